import { type TSchema, Type } from '@sinclair/typebox'
import {
  expecting,
  nonEmptyString,
  object,
  oneOf,
  optional,
  string,
  stringOr,
} from '#api/request-schema.ts'

/** The content parts of messages and tool outputs. */

export const textPart = object(
  {
    type: oneOf(
      ['input_text', 'output_text', 'text'],
      'Text from the client, from a model, or either.',
    ),
    text: string('The text.'),
  },
  { $id: 'TextPart' },
)

export const refusalPart = object(
  { type: Type.Literal('refusal'), refusal: string('Why the model refused to answer.') },
  { $id: 'RefusalPart', description: 'In assistant messages only.' },
)

const url = (description: string) =>
  expecting(
    'an http, https or data URL',
    Type.String({ description, pattern: '^([hH][tT][tT][pP][sS]?://|[dD][aA][tT][aA]:).' }),
  )
const fileId = optional(
  nonEmptyString('A file of `/v1/files` that the user may read. It replaces the other sources.'),
)

export const imagePart = object(
  {
    type: Type.Literal('input_image'),
    image_url: optional(
      url(
        'An http, https or data URL. The upstream fetches it, not the gateway, so private and local addresses are refused.',
      ),
    ),
    file_id: fileId,
    detail: optional(
      oneOf(
        ['low', 'high', 'auto', 'original'],
        'The resolution at which the model sees the image. Values that an upstream does not support are omitted.',
      ),
    ),
  },
  { $id: 'ImagePart', description: 'Either `image_url` or `file_id` is required.' },
)

export const filePart = object(
  {
    type: Type.Literal('input_file'),
    file_data: optional(
      expecting(
        'a data URL or base64',
        Type.String({
          description: 'A data URL or base64.',
          // Not an http URL, which would bypass the validation of `file_url`.
          pattern: '^([dD][aA][tT][aA]:.|[^:\\s]{1,64}$|[^:\\s]{64})',
        }),
      ),
    ),
    file_url: optional(
      url('An http, https or data URL. The upstream fetches it; private addresses are refused.'),
    ),
    file_id: fileId,
    filename: optional(string('The file name that the model sees.')),
  },
  {
    $id: 'FilePart',
    description:
      '`file_data`, `file_url` or `file_id` is required. For a model without file support, the gateway extracts the text (PDF, DOCX, XLSX, PPTX, HTML, text).',
  },
)

/** Parts of any other type are refused. */
const contentPart: TSchema = Type.Union([textPart, refusalPart, imagePart, filePart], {
  $id: 'ContentPart',
})

export const stringOrParts = (description: string) => stringOr(Type.Array(contentPart), description)
