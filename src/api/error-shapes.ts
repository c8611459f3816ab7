import { Type } from '@sinclair/typebox'
import { nullable } from './shapes.ts'

/** The error body of everything outside of /compat. */
export const errorBody = Type.Object(
  {
    error: Type.Object({
      message: Type.String({ description: 'What went wrong, for a person.' }),
      type: Type.String({ description: 'The kind of failure, as SDKs tell them apart.' }),
      param: nullable(Type.String(), 'The field of the request at fault: `input[2].content`.'),
      code: Type.String({ description: 'The failure, for a program.' }),
    }),
  },
  { $id: 'Error' },
)

/** The data of the event `error` of a progress stream. */
export const streamErrorBody = Type.Object(
  {
    error: Type.Object({
      message: Type.String(),
      code: Type.String(),
      param: nullable(Type.String(), 'Always null.'),
    }),
  },
  { $id: 'StreamError', description: 'The data of the event `error`.' },
)

/** The error body of /v1/listen. */
export const listenErrorBody = Type.Object(
  {
    err_code: Type.String({ description: 'The failure, for a program.' }),
    err_msg: Type.String({ description: 'What went wrong, for a person.' }),
    request_id: Type.String({ description: 'The same as in the header `x-request-id`.' }),
  },
  { $id: 'ListenError' },
)

/** The error body under /compat. */
export const messagesErrorBody = Type.Object(
  {
    type: Type.Literal('error'),
    error: Type.Object({
      type: Type.String({ description: 'One of the error types of the Messages protocol.' }),
      message: Type.String({ description: 'What went wrong, for a person.' }),
      details: Type.Object({
        error_code: Type.String({ description: 'The failure, for a program.' }),
      }),
    }),
    request_id: Type.String({ description: 'The same as in the header `request-id`.' }),
  },
  { $id: 'MessagesError' },
)
