/**
 * What a client asks for, and what the model server makes of it. The prompt is
 * `call NUMBER of TENANT: WORDS words, MANNER. CANARY`, the output repeats the canary.
 */
export type Prompt = {
  readonly call: number
  readonly tenant: number
  readonly words: number
  /** `cut`: a stream that breaks off; `error`: status 500. */
  readonly manner: 'well' | 'cut' | 'error'
  readonly canary: string
}

const pattern = /call (\d+) of (\d+): (\d+) words, (well|cut|error)\. (\S+)/g

export function promptText({ call, tenant, words, manner, canary }: Prompt): string {
  return `call ${call} of ${tenant}: ${words} words, ${manner}. ${canary}`
}

/** The last prompt of a request: earlier ones are its history. */
export function readPrompt(body: unknown): Prompt | null {
  const found = [...JSON.stringify(body).matchAll(pattern)].at(-1)
  if (found === undefined) return null
  const [, call, tenant, words, manner, canary = ''] = found
  return {
    call: Number(call),
    tenant: Number(tenant),
    words: Number(words),
    manner: manner === 'cut' || manner === 'error' ? manner : 'well',
    canary: canary.replace(/[^\w~-].*$/, ''),
  }
}

function wordsOf({ call, words, canary }: Prompt): string[] {
  const body = Array.from({ length: words }, (_, at) => `word${at}-of-${call} `)
  return [...body, canary]
}

export function outputOf(prompt: Prompt): string {
  return wordsOf(prompt).join('')
}

const head = { created: 1_700_000_000, model: 'chat' }

function usageOf({ words }: Prompt) {
  return { prompt_tokens: 20, completion_tokens: words, total_tokens: 20 + words }
}

export function chatCompletion(prompt: Prompt): object {
  const message = { role: 'assistant', content: outputOf(prompt) }
  return {
    id: `chatcmpl-${prompt.call}`,
    object: 'chat.completion',
    ...head,
    choices: [{ index: 0, message, finish_reason: 'stop' }],
    usage: usageOf(prompt),
  }
}

export function chatFrames(prompt: Prompt): string[] {
  const frame = (choices: readonly object[], more: object = {}) =>
    `data: ${JSON.stringify({
      id: `chatcmpl-${prompt.call}`,
      object: 'chat.completion.chunk',
      ...head,
      choices,
      ...more,
    })}\n\n`
  const delta = (value: object, finish: string | null = null) =>
    frame([{ index: 0, delta: value, finish_reason: finish }])
  return [
    delta({ role: 'assistant', content: '' }),
    ...wordsOf(prompt).map((word) => delta({ content: word })),
    delta({}, 'stop'),
    frame([], { usage: usageOf(prompt) }),
    'data: [DONE]\n\n',
  ]
}
