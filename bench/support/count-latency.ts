import { textKinds, textOf } from '#test/support/token-texts.ts'
import { type Gateway, startGateway } from './gateway.ts'
import { Histogram, type Quantiles } from './histogram.ts'
import { startMockUpstream } from './load.ts'
import { modelName } from './plan.ts'
import { formatTable } from './table.ts'

const requestChars = 100_000
const messageChars = 1_000
const mockLifetimeS = 900
const warmUpRequests = 20

/** How a request relates to the previous one. */
const cases = ['all new', 'grown by 1 kB', 'the same again'] as const

/** Latency table of counting 100 kB, by counter and by what was counted before. */
export async function measureCountLatency(requests: number): Promise<string> {
  const upstreamPort = await startMockUpstream(mockLifetimeS)
  const rows: string[][] = []
  for (const [tier, tokenizer] of [
    ['tokenizer', 'o200k'],
    ['estimate', 'none'],
  ] as const) {
    const configLines = `[tokens]\ntokenizer = "${tokenizer}"\n`
    const gateway = await startGateway({ upstreamPort, upstreamApi: 'chat', configLines })
    for (const sameness of cases) {
      const { latency, tiers } = await measure(gateway, sameness, requests)
      rows.push([tier, sameness, ...formatLatency(latency), [...tiers].join(', ')])
    }
  }
  return formatTable(['tier', 'request', 'p50', 'p99', 'slowest', 'counted by'], rows)
}

async function measure(
  gateway: Gateway,
  sameness: (typeof cases)[number],
  requests: number,
): Promise<{ latency: Quantiles; tiers: Set<string> }> {
  const latency = new Histogram()
  const tiers = new Set<string>()
  let messages = newMessages(requestChars / messageChars)
  for (let turn = -warmUpRequests; turn < requests; turn++) {
    if (sameness === 'all new') messages = newMessages(messages.length)
    if (sameness === 'grown by 1 kB') messages = [...messages.slice(1), ...newMessages(1)]
    const { tookMs, tier } = await count(gateway, messages)
    if (turn < 0) continue
    latency.record(tookMs)
    tiers.add(tier)
  }
  return { latency: latency.quantiles(), tiers }
}

async function count({ port, bearer }: Gateway, messages: readonly string[]) {
  const body = JSON.stringify({
    model: modelName,
    messages: messages.map((content) => ({ role: 'user', content })),
  })
  const startedMs = performance.now()
  const httpResponse = await fetch(`http://127.0.0.1:${port}/compat/v1/messages/count_tokens`, {
    method: 'POST',
    headers: { authorization: `Bearer ${bearer}`, 'content-type': 'application/json' },
    body,
  })
  await httpResponse.text()
  const tookMs = performance.now() - startedMs
  if (httpResponse.status !== 200) throw new Error(`the gateway returned ${httpResponse.status}`)
  return { tookMs, tier: httpResponse.headers.get('x-sluice-token-count') ?? 'none' }
}

const lines = textKinds.flatMap((kind) => textOf(kind).split('\n')).filter((line) => line !== '')

/** New texts with lines of all six kinds. */
function newMessages(howMany: number): string[] {
  return Array.from({ length: howMany }, () => {
    let text = crypto.randomUUID()
    while (text.length < messageChars) {
      text += `\n${lines[Math.floor(Math.random() * lines.length)] ?? ''}`
    }
    return text.slice(0, messageChars)
  })
}

function formatLatency({ p50, p99, max }: Quantiles): string[] {
  return [p50, p99, max].map((ms) => ms.toFixed(1))
}
