import { type TSchema, Type } from '@sinclair/typebox'
import { describeObject } from '#api/described.ts'
import {
  base64Source,
  compactionBlock,
  contentSource,
  documentBlock,
  mediaBlock,
  redactedThinkingBlock,
  searchResultBlock,
  serverToolResultBlock,
  textBlock,
  textSource,
  thinkingBlock,
  toolReferenceBlock,
  toolResultBlock,
  toolUseBlock,
  urlSource,
} from '#surfaces/messages/schema.ts'

/** What the messages of a request are made of. */

const named = (type: string) => ({ type: Type.Literal(type) })
const oneOf = (...words: readonly string[]) => Type.Union(words.map((word) => Type.Literal(word)))

const textInput = describeObject(
  textBlock,
  { text: 'The text; an empty one is left out.' },
  { own: named('text'), $id: 'TextBlockInput' },
)

const base64Of = (mediaTypes: TSchema, data: string) =>
  describeObject(base64Source, { media_type: mediaTypes, data }, { own: named('base64') })
const atUrl = describeObject(
  urlSource,
  { url: 'http or https, of a public host. The upstream fetches it, not the gateway.' },
  { own: named('url') },
)

const image = describeObject(
  mediaBlock,
  {
    source: Type.Union([
      base64Of(
        oneOf('image/jpeg', 'image/png', 'image/gif', 'image/webp'),
        'Up to 10,485,760 bytes without the base64.',
      ),
      atUrl,
    ]),
  },
  { own: named('image'), $id: 'ImageBlockInput' },
)

const searchResult = describeObject(
  searchResultBlock,
  {
    source: 'Where it is from.',
    title: 'Its title.',
    content: Type.Array(textInput, { description: 'What it says.' }),
  },
  { own: named('search_result'), $id: 'SearchResultBlockInput' },
)

const toolReference = describeObject(
  toolReferenceBlock,
  { tool_name: 'A tool of `tools` that was deferred, and can be called from now on.' },
  { own: named('tool_reference'), $id: 'ToolReferenceBlockInput' },
)

const browserState = Type.Object(named('browser_state'), {
  $id: 'BrowserStateBlockInput',
  additionalProperties: true,
  description: 'The model reads its JSON.',
})

const inDocument: readonly TSchema[] = [
  ...[textInput, image, searchResult, toolReference, browserState],
]

const document = describeObject(
  documentBlock,
  {
    source: Type.Union([
      describeObject(textSource, { data: 'The text.' }, { own: named('text') }),
      describeObject(
        contentSource,
        {
          content: Type.Union([Type.String(), Type.Array(Type.Union([...inDocument]))], {
            description: 'A text, or blocks.',
          }),
        },
        { own: named('content') },
      ),
      base64Of(Type.Literal('application/pdf'), 'The file.'),
      atUrl,
    ]),
    title: 'Its title, and the name of the file.',
    context: 'What the model should know about it.',
  },
  {
    own: named('document'),
    $id: 'DocumentBlockInput',
    description: 'Sources of the type `file` are refused: there are no files on this surface.',
  },
)

const content: readonly TSchema[] = [...inDocument, document]

const toolResult = describeObject(
  toolResultBlock,
  {
    tool_use_id: 'Of a `tool_use` before it that has no result yet.',
    content: Type.Union([Type.String(), Type.Array(Type.Union([...content]))], {
      description: 'What the tool gave.',
    }),
    is_error: 'Whether it failed.',
  },
  { own: named('tool_result'), $id: 'ToolResultBlockInput', description: 'Of the user only.' },
)

const thinking = describeObject(
  thinkingBlock,
  {
    thinking: 'The thoughts, as they were answered.',
    signature: 'As it was answered. With that of another service the block is left out.',
  },
  { own: named('thinking'), $id: 'ThinkingBlockInput', description: 'Of the assistant only.' },
)

const redactedThinking = describeObject(
  redactedThinkingBlock,
  { data: 'As it was answered.' },
  {
    own: named('redacted_thinking'),
    $id: 'RedactedThinkingBlockInput',
    description: 'Of the assistant only.',
  },
)

const callFields = {
  id: 'By which the result names its call.',
  name: 'The tool.',
  input: 'Its arguments; absent: none.',
}

const toolUse = describeObject(toolUseBlock, callFields, {
  own: named('tool_use'),
  $id: 'ToolUseBlockInput',
  description: 'Of the assistant only.',
})

const serverToolUse = describeObject(toolUseBlock, callFields, {
  own: { type: oneOf('server_tool_use', 'mcp_tool_use') },
  $id: 'ServerToolUseBlockInput',
  description: 'Of the assistant only: what ran before on the side of whoever answered.',
})

const serverToolResult = describeObject(
  serverToolResultBlock,
  {
    tool_use_id: 'Of its call.',
    content: Type.Unknown({ description: 'What it gave; the model reads it as text.' }),
  },
  {
    own: { type: Type.String({ pattern: '_tool_result$' }) },
    $id: 'ServerToolResultBlockInput',
    description: 'Of the assistant only: `web_search_tool_result`, `mcp_tool_result` and such.',
  },
)

const compaction = describeObject(
  compactionBlock,
  { content: 'What was said before, in short.' },
  { own: named('compaction'), $id: 'CompactionBlockInput', description: 'Of the assistant only.' },
)

const silent = Type.Object(
  {
    type: oneOf('container_upload', 'fallback', 'mcp_listing', 'tool_addition', 'tool_removal'),
  },
  {
    $id: 'LeftOutBlock',
    additionalProperties: true,
    description: 'Taken and left out. The last two are of the system only.',
  },
)

/** Blocks of any other type are refused. */
const blocks: readonly TSchema[] = [
  ...[...content, toolResult, thinking, redactedThinking, toolUse, serverToolUse],
  ...[serverToolResult, compaction, silent],
]

export const inputBlock: TSchema = Type.Union([...blocks], { $id: 'InputBlock' })

export const textsOnly = (description: string): TSchema =>
  Type.Union([Type.String(), Type.Array(textInput)], { description })
