import { type TSchema, Type } from '@sinclair/typebox'
import {
  anyObject,
  arrayOf,
  boolean,
  nonEmptyString,
  object,
  oneOf,
  optional,
  string,
  stringOr,
  typed,
} from '#api/request-schema.ts'

/** The content blocks of the messages of a request. */

const assistantOnly = 'In assistant messages only.'

export const textBlock = object(
  { type: Type.Literal('text'), text: string('The text. Empty text is ignored.') },
  { $id: 'TextBlockParam' },
)

const base64Source = (mediaType: TSchema, description: string) =>
  object({
    type: Type.Literal('base64'),
    media_type: mediaType,
    data: nonEmptyString(description),
  })
/** Of images and documents alike; each has its own media types. */
export const anyBase64Source = base64Source(
  nonEmptyString('The media type.'),
  'The data as base64.',
)
export const urlSource = object({
  type: Type.Literal('url'),
  url: nonEmptyString(
    'An http or https URL of a public host. The upstream fetches it, not the gateway.',
  ),
})

export const fileSource = object({
  type: Type.Literal('file'),
  file_id: nonEmptyString('A file of `/v1/files` that the user may read.'),
})

export const imageTypes = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'] as const

export const imageBlock = object(
  {
    type: Type.Literal('image'),
    source: Type.Union([
      base64Source(
        oneOf(imageTypes, 'The media type.'),
        'Up to 10,485,760 bytes before base64 encoding.',
      ),
      urlSource,
      fileSource,
    ]),
  },
  { $id: 'ImageBlockParam' },
)

export const searchResultBlock = object(
  {
    type: Type.Literal('search_result'),
    source: string('The origin of the result.'),
    title: string('The title of the result.'),
    content: arrayOf(textBlock, 'The text of the result.'),
  },
  { $id: 'SearchResultBlockParam' },
)

export const toolReferenceBlock = object(
  {
    type: Type.Literal('tool_reference'),
    tool_name: nonEmptyString('A deferred tool of `tools`, which can be called from now on.'),
  },
  { $id: 'ToolReferenceBlockParam' },
)

const browserState = typed('browser_state', {
  $id: 'BrowserStateBlockParam',
  description: 'Sent to the model as JSON.',
})

const documentContent: readonly TSchema[] = [
  textBlock,
  imageBlock,
  searchResultBlock,
  toolReferenceBlock,
  browserState,
]

export const textSource = object({ type: Type.Literal('text'), data: string('The text.') })

export const contentSource = object({
  type: Type.Literal('content'),
  content: stringOr(Type.Array(Type.Union([...documentContent])), 'Text, or content blocks.'),
})

export const documentBlock = object(
  {
    type: Type.Literal('document'),
    source: Type.Union([textSource, contentSource, anyBase64Source, urlSource, fileSource]),
    title: optional(string('The title, and the name of the file.')),
    context: optional(string('What the model should know about the document.')),
  },
  {
    $id: 'DocumentBlockParam',
    description:
      'For a model without file support, the gateway extracts the text (PDF, DOCX, XLSX, PPTX, HTML, text).',
  },
)

const content: readonly TSchema[] = [...documentContent, documentBlock]

export const toolResultBlock = object(
  {
    type: Type.Literal('tool_result'),
    tool_use_id: nonEmptyString('The id of an earlier `tool_use` without a result.'),
    content: optional(stringOr(Type.Array(Type.Union([...content])), 'The result of the tool.')),
    is_error: optional(boolean('Whether the tool failed.')),
  },
  { $id: 'ToolResultBlockParam', description: 'In user messages only.' },
)

export const thinkingBlock = object(
  {
    type: Type.Literal('thinking'),
    thinking: string('The thinking of the response, unchanged.'),
    signature: optional(
      string('The signature, unchanged. A block signed by another service is ignored.'),
    ),
  },
  { $id: 'ThinkingBlockParam', description: assistantOnly },
)

export const redactedThinkingBlock = object(
  { type: Type.Literal('redacted_thinking'), data: string('The data, unchanged.') },
  { $id: 'RedactedThinkingBlockParam', description: assistantOnly },
)

const callFields = {
  id: nonEmptyString('Links the result to its call.'),
  name: nonEmptyString('The name of the tool.'),
  input: optional(anyObject('The arguments. Default: none.')),
}

export const toolUseBlock = object(
  { type: Type.Literal('tool_use'), ...callFields },
  { $id: 'ToolUseBlockParam', description: assistantOnly },
)

const serverToolUse = object(
  { type: oneOf(['server_tool_use', 'mcp_tool_use'], 'The kind of tool.'), ...callFields },
  {
    $id: 'ServerToolUseBlockParam',
    description: 'In assistant messages only: a call that the responding service ran itself.',
  },
)

export const serverToolResultBlock = object(
  {
    type: Type.String({ pattern: '_tool_result$' }),
    tool_use_id: nonEmptyString('The id of the call.'),
    content: Type.Optional(Type.Unknown({ description: 'The result; the model gets it as text.' })),
  },
  {
    $id: 'ServerToolResultBlockParam',
    description:
      'In assistant messages only: `web_search_tool_result`, `mcp_tool_result` and similar.',
  },
)

export const compactionBlock = object(
  {
    type: Type.Literal('compaction'),
    content: optional(string('A summary of the earlier conversation.')),
  },
  { $id: 'CompactionBlockParam', description: assistantOnly },
)

/** Blocks of features that the gateway does not support. */
export const ignoredBlockTypes = ['container_upload', 'fallback', 'mcp_listing'] as const
/** Blocks of system messages that change the tools during a conversation. */
export const toolChangeTypes = ['tool_addition', 'tool_removal'] as const

const ignoredBlock = object(
  {
    type: oneOf([...ignoredBlockTypes, ...toolChangeTypes], 'The ignored type.'),
  },
  {
    $id: 'LeftOutBlock',
    description:
      'Ignored, except the last two types, which add or remove a tool and are allowed in system messages only.',
  },
)

/** Blocks of any other type are refused. */
export const inputBlock: TSchema = Type.Union(
  [
    ...content,
    toolResultBlock,
    thinkingBlock,
    redactedThinkingBlock,
    toolUseBlock,
    serverToolUse,
    serverToolResultBlock,
    compactionBlock,
    ignoredBlock,
  ],
  { $id: 'InputBlock' },
)
