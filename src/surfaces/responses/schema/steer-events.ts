import { type Static, Type } from '@sinclair/typebox'
import { oneOf } from '#api/request-schema.ts'

/** The events about input of `response.steer`. */

const shared = {
  sequence_number: Type.Integer({
    description: 'The number of the latest event of the response; these events are not numbered.',
  }),
  stream_id: Type.Optional(Type.String({ description: 'That of the response.' })),
}
const submission = {
  id: Type.String({ description: '`steer_…`' }),
  previous_response_id: Type.String({ description: 'The response that is steered.' }),
}

const accepted = Type.Object(
  { type: Type.Literal('response.steer.accepted'), ...shared, steer: Type.Object(submission) },
  { $id: 'SteerAcceptedEvent' },
)
export type SteerAccepted = Static<typeof accepted>

const callId = { call_id: Type.String() }
const requiredInput = Type.Union([
  Type.Object({
    type: Type.Literal('function_call_output'),
    ...callId,
    name: Type.String(),
  }),
  Type.Object({
    type: oneOf(
      [
        'custom_tool_call_output',
        'computer_call_output',
        'shell_call_output',
        'apply_patch_call_output',
      ],
      'The type of the item.',
    ),
    ...callId,
  }),
  Type.Object({
    type: Type.Literal('tool_search_output'),
    ...callId,
    execution: Type.Literal('client'),
  }),
  Type.Object({
    type: Type.Literal('mcp_approval_response'),
    approval_request_id: Type.String(),
  }),
])
export type RequiredInput = Static<typeof requiredInput>

const pending = Type.Object(
  {
    type: Type.Literal('response.steer.pending'),
    ...shared,
    steer: Type.Object(submission),
    reason: Type.Literal('waiting_for_required_input'),
    required_input: Type.Array(requiredInput, {
      description: 'Input items without their results.',
    }),
  },
  { $id: 'SteerPendingEvent' },
)
export type SteerPending = Omit<Static<typeof pending>, 'required_input'> & {
  required_input: readonly RequiredInput[]
}

const errorCodes = [
  'response_not_found',
  'invalid_input',
  'steering_not_supported',
  'too_many_pending_steers',
  'response_already_completed',
  'response_not_active',
  'successor_creation_failed',
] as const
export type SteerErrorCode = (typeof errorCodes)[number]

const failed = Type.Object(
  {
    type: Type.Literal('response.steer.failed'),
    ...shared,
    steer: Type.Object({
      ...submission,
      id: Type.Optional(submission.id),
      input: Type.Unknown({ description: 'As it was sent.' }),
    }),
    error: Type.Object({
      type: Type.Literal('invalid_request_error'),
      code: oneOf(errorCodes, 'Why no response begins with the input.'),
      message: Type.String(),
    }),
  },
  { $id: 'SteerFailedEvent' },
)
export type SteerFailed = Static<typeof failed>

export const steerEvent = Type.Union([accepted, pending, failed], { $id: 'SteerEvent' })
