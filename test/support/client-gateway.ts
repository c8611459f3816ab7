import { expect } from 'bun:test'
import { type Gateway, startGateway } from './gateway.ts'
import { chatStream } from './recordings.ts'
import { type ReplayAnswer, startReplayUpstream } from './replay-upstream.ts'
import { chatAnswer, chunk, nativeAnswer } from './scripted-answers.ts'

/** The upstream behind the gateway of a client, and its models. */
export const kinds = [
  {
    kind: 'demo',
    model: 'demo-fast',
    tools: 'demo-tools',
    reasoning: 'demo-reasoning',
    slow: 'demo-quiet',
  },
  { kind: 'chat', model: 'm', tools: 'm', reasoning: 'm', slow: 'm' },
  { kind: 'responses', model: 'm', tools: 'm', reasoning: 'm', slow: 'm' },
] as const

export type Kind = (typeof kinds)[number]['kind']

/** Some clients enable features by model names like this one; it is an alias of the first model. */
export const pickyName = 'gpt-house'

/** A prompt whose response begins and does not end. */
export const slowPrompt = 'be quiet 3600'

export type ClientGateway = { gateway: Gateway; stop(): Promise<void> }

export async function startClientGateway(kind: Kind): Promise<ClientGateway> {
  const upstream = await startReplayUpstream(({ path, body }) =>
    path.endsWith('/models')
      ? { headers: { 'content-type': 'application/json' }, body: '{"data":[{"id":"m"}]}' }
      : answerOf(kind, body),
  )
  const entry = { upstreams: [kind === 'demo' ? 'demo' : 'upstream-0'] }
  const gateway = await startGateway({
    ...(kind === 'demo' ? {} : { upstream: [{ url: upstream.baseUrl, api: kind }] }),
    model: [{ ...entry, name: pickyName, upstreamModel: kind === 'demo' ? 'demo-fast' : 'm' }],
  })
  return {
    gateway,
    async stop() {
      await gateway.stop()
      await upstream.stop()
    },
  }
}

/**
 * Throws unless the model received all of these texts. The demo models prove it by their word
 * count.
 */
export function expectRecall(
  kind: Kind,
  answer: { text: string; inputTokens: number | undefined },
  said: readonly string[],
): void {
  if (kind === 'demo') {
    expect(answer.inputTokens).toBeGreaterThan(said.join(' ').split(/\s+/).length)
  } else {
    for (const part of said) expect(answer.text).toContain(part)
  }
}

function answerOf(kind: Kind, body: string): ReplayAnswer {
  if (body.includes(slowPrompt)) return { body: begun[kind], ending: 'hang' }
  return { body: kind === 'responses' ? nativeAnswer(body) : chatAnswer(body) }
}

const message = { type: 'message', id: 'm', role: 'assistant', content: [] }
const begun: Readonly<Record<Kind, string>> = {
  demo: '',
  chat: chatStream([chunk({ content: 'Quiet ' })]).replace('data: [DONE]\n\n', ''),
  responses: [
    { type: 'response.created', response: { id: 'x', status: 'in_progress' } },
    { type: 'response.output_item.added', output_index: 0, item: message },
    { type: 'response.output_text.delta', output_index: 0, item_id: 'm', delta: 'Quiet ' },
  ]
    .map((event) => `data: ${JSON.stringify(event)}\n\n`)
    .join(''),
}
