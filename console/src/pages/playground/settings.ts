import type { JsonObject, Surface } from './surface.ts'

/** What is sent beside the messages. Texts are as typed; `parseTools` and `parseFormat` read them. */
export type Settings = {
  readonly model: string
  readonly surface: Surface
  readonly instructions: string
  readonly effort: '' | 'minimal' | 'low' | 'medium' | 'high'
  readonly temperature: string
  readonly maxTokens: string
  readonly tools: string
  readonly format: string
  readonly collection: string
  readonly isStored: boolean
}

export const defaultSettings: Settings = {
  model: '',
  surface: 'responses',
  instructions: '',
  effort: '',
  temperature: '',
  maxTokens: '',
  tools: '',
  format: '',
  collection: '',
  isStored: true,
}

export const exampleTools = JSON.stringify(
  [
    {
      type: 'function',
      name: 'get_weather',
      description: 'The weather of a city today.',
      parameters: {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      },
    },
  ],
  null,
  2,
)

export const exampleFormat = JSON.stringify(
  {
    type: 'object',
    properties: {
      title: { type: 'string' },
      tags: { type: 'array', items: { type: 'string' } },
    },
    required: ['title', 'tags'],
    additionalProperties: false,
  },
  null,
  2,
)

/** The tools as typed, in the format of the Responses surface. Throws with a sentence. */
export function parseTools(text: string): JsonObject[] {
  if (text.trim() === '') return []
  const value: unknown = JSON.parse(text)
  if (!Array.isArray(value)) throw new Error('[ … ]')
  return value as JsonObject[]
}

export function parseFormat(text: string): JsonObject | null {
  if (text.trim() === '') return null
  const value: unknown = JSON.parse(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw new Error('{ … }')
  return value as JsonObject
}

/** The parser's sentence, or null for valid text. */
export function faultOf(parse: (text: string) => unknown, text: string): string | null {
  try {
    parse(text)
    return null
  } catch (error) {
    return (error as Error).message
  }
}
