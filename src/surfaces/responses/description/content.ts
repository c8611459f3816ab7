import { type TSchema, Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import { filePart, imagePart, refusalPart, textPart } from '#surfaces/responses/schema.ts'

/** What messages and outputs of tools are made of. */

export const literals = (words: readonly string[], description: string) =>
  Type.Union(
    words.map((word) => Type.Literal(word)),
    { description },
  )

const text = describeObject(
  textPart,
  { text: 'The text.' },
  {
    own: {
      type: literals(
        ['input_text', 'output_text', 'text'],
        'Of the caller, of a model, or of either.',
      ),
    },
    $id: 'TextPart',
  },
)

const refusal = describeObject(
  refusalPart,
  { refusal: 'Why the model would not answer.' },
  {
    own: { type: Type.Literal('refusal') },
    $id: 'RefusalPart',
    description: 'In messages of an assistant only.',
  },
)

const image = describeObject(
  imagePart,
  {
    image_url: null,
    file_id: null,
    detail: 'How closely the model looks; what an upstream does not know is left out.',
  },
  {
    own: {
      type: Type.Literal('input_image'),
      image_url: {
        ...Type.Optional(imagePart.properties.image_url, false),
        description: 'An http, https or data URL. The upstream fetches it, not the gateway.',
      },
    },
    $id: 'ImagePart',
    description: '`file_id` is refused.',
  },
)

const file = describeObject(
  filePart,
  {
    file_data: 'A data URL, or base64.',
    file_url: 'An http, https or data URL.',
    file_id: null,
    filename: 'Under which name the model sees it.',
  },
  {
    own: { type: Type.Literal('input_file') },
    $id: 'FilePart',
    description: 'One of `file_data` and `file_url` is needed; `file_id` is refused.',
  },
)

/** Parts of any other type are refused. */
const contentPart = Type.Union([text, refusal, image, file], { $id: 'ContentPart' })

export const textOrParts = (description: string): TSchema =>
  Type.Union([Type.String(), Type.Array(contentPart)], { description })
