import type { templates } from './templates.ts'

/** What a model is asked, and what it says. */
export type Conversation = {
  name: string
  template: keyof typeof templates
  says: string
  ask?: Partial<Question>
}

/** A question in terms that every protocol has. */
type Question = {
  tools: boolean
  /** Of JSON that the answer must satisfy. */
  schema: object
  maxTokens: number
  stop: string
  /** The call and its result come before the answer. */
  afterCall: boolean
  /** More options of the server's chat completions; the conversation has no other protocol. */
  chatOptions: object
}

const mild = 'The weather in Paris is mild: 18 degrees, with wind from the west. Take a coat!'
const thought = 'The user asks about Paris. I know nothing about today, so I need the tool.'
const call = (name: string, input: object) =>
  `<tool_call>\n${JSON.stringify({ name, arguments: input })}\n</tool_call>`
const paris = { city: 'Paris' }
const trip = {
  city: 'Köln',
  days: [
    { date: '2026-11-23', hours: [8, 12.5, -1e3] },
    { date: null, hours: [] },
  ],
  note: 'Say "grüß Gott"\n\tand C:\\temp — 日本語 🌧',
  exact: false,
}
const unicode =
  'Grüße aus Köln! 今日は雨です — take an umbrella ☔. 👩‍🚀 says: "naïve café", 50 € or £43.\n\n' +
  "```ts\nconst answer = '\\u00e9' + `$" +
  '{1 + 1}` // é\n```\n| a | b |\n|---|---|\n| 1 | "2" |\n\u2028end'

export const conversations: readonly Conversation[] = [
  { name: 'text', template: 'hermes', says: mild },
  { name: 'text-unicode', template: 'hermes', says: unicode },
  { name: 'text-limit', template: 'hermes', says: mild, ask: { maxTokens: 6 } },
  { name: 'text-stop', template: 'hermes', says: mild, ask: { stop: ' wind' } },
  { name: 'text-long', template: 'hermes', says: longText() },
  {
    name: 'text-after-call',
    template: 'hermes',
    says: mild,
    ask: { tools: true, afterCall: true },
  },
  {
    name: 'text-logprobs',
    template: 'hermes',
    says: mild,
    ask: { chatOptions: { logprobs: true, top_logprobs: 2 } },
  },
  {
    name: 'text-progress',
    template: 'hermes',
    says: mild,
    ask: { chatOptions: { return_progress: true, timings_per_token: true } },
  },
  {
    name: 'text-without-usage',
    template: 'hermes',
    says: mild,
    ask: { chatOptions: { stream_options: { include_usage: false } } },
  },
  {
    name: 'reasoning-in-text',
    template: 'hermes',
    says: `<think>\n${thought}\n</think>\n\n${mild}`,
    ask: { chatOptions: { reasoning_format: 'none' } },
  },
  { name: 'empty', template: 'hermes', says: '' },
  { name: 'reasoning', template: 'hermes', says: `<think>\n${thought}\n</think>\n\n${mild}` },
  {
    name: 'reasoning-limit',
    template: 'hermes',
    says: `<think>\n${thought}\n</think>\n\n${mild}`,
    ask: { maxTokens: 9 },
  },
  {
    name: 'tool-call',
    template: 'hermes',
    says: call('get_weather', paris),
    ask: { tools: true },
  },
  {
    name: 'tool-call-after-text',
    template: 'hermes',
    says: `I will look it up.\n${call('get_weather', paris)}`,
    ask: { tools: true },
  },
  {
    name: 'tool-call-after-reasoning',
    template: 'hermes',
    says: `<think>\n${thought}\n</think>\n\n${call('get_weather', paris)}`,
    ask: { tools: true },
  },
  {
    name: 'tool-calls-parallel',
    template: 'hermes',
    says: `${call('get_weather', paris)}\n${call('get_weather', { city: 'Rome' })}\n${call('now', {})}`,
    ask: { tools: true },
  },
  {
    name: 'tool-call-no-arguments',
    template: 'hermes',
    says: call('now', {}),
    ask: { tools: true },
  },
  {
    name: 'tool-call-nested',
    template: 'hermes',
    says: call('plan_trip', trip),
    ask: { tools: true },
  },
  {
    name: 'tool-call-limit',
    template: 'hermes',
    says: call('plan_trip', trip),
    ask: { tools: true, maxTokens: 16 },
  },
  {
    // Notations that the server does not understand fail the response.
    name: 'error-notation',
    template: 'tags',
    says: `<tool_call>\n<function=get_weather>\n<parameter=city>\nParis\n</parameter>\n</function>\n</tool_call>`,
    ask: { tools: true },
  },
  {
    name: 'tool-call-marker',
    template: 'marker',
    says: `[TOOL_CALLS]get_weather[ARGS]${JSON.stringify(paris)}`,
    ask: { tools: true },
  },
  {
    name: 'channels',
    template: 'channels',
    says: `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant<|channel|>final<|message|>${mild}`,
  },
  {
    name: 'channels-tool-call',
    template: 'channels',
    says: `<|channel|>analysis<|message|>${thought}<|end|><|start|>assistant<|channel|>commentary to=functions.get_weather <|constrain|>json<|message|>${JSON.stringify(paris)}`,
    ask: { tools: true },
  },
  {
    name: 'structured',
    template: 'hermes',
    says: JSON.stringify({ city: 'Paris', degrees: 18, wind: ['west', 'north'] }),
    ask: {
      schema: {
        type: 'object',
        properties: {
          city: { type: 'string' },
          degrees: { type: 'integer' },
          wind: { type: 'array', items: { type: 'string' } },
        },
        required: ['city', 'degrees', 'wind'],
        additionalProperties: false,
      },
    },
  },
]

/** Longer than the buffers between a server and its client. */
function longText(): string {
  const numbers = Array.from({ length: 260 }, (_, at) => `${at} × ${at + 3} = ${at * (at + 3)}`)
  return `| all | products |\n|---|---|\n${numbers.join('; ')}.`
}

/**
 * The text as tokens of up to five characters, each different, because a token decides the next
 * one. Where possible, characters outside ASCII are several tokens of a byte each, which a server
 * has to hold back until the character is complete.
 */
export function tokensOf(text: string): string[] {
  const tokens: string[] = []
  let rest = ''
  const take = (piece: string) => {
    if (tokens.includes(piece)) return false
    tokens.push(piece)
    return true
  }
  for (const piece of text.match(/[^\p{ASCII}]|\s*[!-~]{1,5}|\s+/gu) ?? []) {
    const bytes = [...Buffer.from(piece)].map((byte) => `<0x${byte.toString(16).toUpperCase()}>`)
    const isSplit = rest === '' && bytes.length > 1 && /[^\p{ASCII}]/u.test(piece)
    if (isSplit && !bytes.some((byte) => tokens.includes(byte))) tokens.push(...bytes)
    else if (take(rest + piece)) rest = ''
    else rest += piece
  }
  if (rest !== '') tokens.push(`${tokens.pop() ?? ''}${rest}`)
  return tokens
}
