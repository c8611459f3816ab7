import { type Static, Type } from '@sinclair/typebox'
import type { JsonObject } from '#lib/json.ts'

/**
 * The request shapes of `POST /compat/v1/messages`, and the only source of their types.
 *
 * Each object stands for itself: what lies deeper has a schema of its own and is read once its
 * `type` is known, so that an error names the field at fault. A field that is null counts as not
 * given, and fields that are not listed pass. A `description` completes the sentence "<field>: must
 * be …".
 */

const text = (description = 'a text') => Type.String({ description })
const filled = (description = 'a text that is not empty') =>
  Type.String({ description, minLength: 1 })
const flag = () => Type.Boolean({ description: 'true or false' })
const list = (description: string) => Type.Array(Type.Unknown(), { description })
const object = () => Type.Unsafe<JsonObject>(Type.Object({}, { description: 'an object' }))
const textOr = (items: string) =>
  Type.Union([Type.String(), Type.Array(Type.Unknown())], {
    description: `a text or an array of ${items}`,
  })
const count = (minimum: number) =>
  Type.Integer({
    description: `a whole number of ${minimum} or more`,
    minimum,
    maximum: Number.MAX_SAFE_INTEGER,
  })

/** What a request for a count of its tokens has too. */
const promptFields = {
  model: Type.String({ description: 'the name of a model', minLength: 1, maxLength: 256 }),
  messages: list('an array of messages'),
  system: Type.Optional(textOr('text blocks')),
  tools: Type.Optional(list('an array of tools')),
  tool_choice: Type.Optional(object()),
  thinking: Type.Optional(object()),
  output_config: Type.Optional(object()),
  output_format: Type.Optional(object()),
}

export const countBody = Type.Object(promptFields)

export const messageBody = Type.Object({
  ...promptFields,
  max_tokens: count(0),
  stream: Type.Optional(flag()),
  stop_sequences: Type.Optional(list('an array of texts')),
  metadata: Type.Optional(object()),
  service_tier: Type.Optional(text()),
  thread: Type.Optional(object()),
})
export type PromptBody = Static<typeof countBody>

/** Only in the older dialect; the newer ones know no such fields. */
export const samplingFields = Type.Object({
  temperature: Type.Optional(
    Type.Number({ description: 'a number from 0 to 2', minimum: 0, maximum: 2 }),
  ),
  top_p: Type.Optional(
    Type.Number({ description: 'a number from 0 to 1', minimum: 0, maximum: 1 }),
  ),
  top_k: Type.Optional(count(0)),
})

export const metadataFields = Type.Object({ user_id: Type.Optional(text()) })

export const thinkingFields = Type.Object({
  budget_tokens: Type.Optional(count(0)),
  display: Type.Optional(text()),
})

export const outputConfig = Type.Object({
  effort: Type.Optional(text('one of low, medium, high, xhigh, max')),
  format: Type.Optional(object()),
})

export const schemaFormat = Type.Object({ schema: object() })

// Messages

export const message = Type.Object({
  role: Type.Union([Type.Literal('user'), Type.Literal('assistant'), Type.Literal('system')], {
    description: 'one of user, assistant, system',
  }),
  content: textOr('content blocks'),
})

// Content blocks

export const textBlock = Type.Object({ text: text() })

export const mediaBlock = Type.Object({ source: object() })

export const documentBlock = Type.Object({
  source: object(),
  title: Type.Optional(text()),
  context: Type.Optional(text()),
})

export const searchResultBlock = Type.Object({
  source: text(),
  title: text(),
  content: list('an array of text blocks'),
})

export const thinkingBlock = Type.Object({ thinking: text(), signature: Type.Optional(text()) })

export const redactedThinkingBlock = Type.Object({ data: text() })

export const compactionBlock = Type.Object({ content: Type.Optional(text()) })

/** Of tools that the caller runs and of those that ran elsewhere. */
export const toolUseBlock = Type.Object({
  id: filled(),
  name: filled(),
  input: Type.Optional(object()),
})

export const toolResultBlock = Type.Object({
  tool_use_id: filled(),
  content: Type.Optional(textOr('content blocks')),
  is_error: Type.Optional(flag()),
})

export const serverToolResultBlock = Type.Object({
  tool_use_id: filled(),
  content: Type.Optional(Type.Unknown()),
})

export const toolReferenceBlock = Type.Object({ tool_name: filled() })

// Sources

export const base64Source = Type.Object({
  media_type: filled('a media type'),
  data: filled('base64 that is not empty'),
})

export const textSource = Type.Object({ data: text() })

export const contentSource = Type.Object({ content: textOr('text and image blocks') })

export const urlSource = Type.Object({ url: filled('a URL') })

// Tools

export const customTool = Type.Object({
  name: Type.String({
    description: '1 to 128 letters, digits, underscores or dashes',
    pattern: '^[a-zA-Z0-9_-]{1,128}$',
  }),
  input_schema: object(),
  description: Type.Optional(text()),
  strict: Type.Optional(flag()),
  defer_loading: Type.Optional(flag()),
})

export const toolChoiceFields = Type.Object({
  name: Type.Optional(filled('the name of a tool')),
  disable_parallel_tool_use: Type.Optional(flag()),
})
