import { afterAll, beforeAll, expect, test } from 'bun:test'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, startGateway } from '#test/support/gateway.ts'
import { chatStream } from '#test/support/recordings.ts'
import { type ReplayUpstream, startReplayUpstream } from '#test/support/replay-upstream.ts'
import { chunk } from '#test/support/scripted-answers.ts'
import { textOf } from '#test/support/token-texts.ts'

const reported = 450
const usage = { prompt_tokens: reported, completion_tokens: 1, total_tokens: reported + 1 }

let upstream: ReplayUpstream
let gateway: Gateway
beforeAll(async () => {
  const body = chatStream([chunk({ content: 'Yes.' }), chunk({}, 'stop'), { choices: [], usage }])
  upstream = await startReplayUpstream({ body })
  gateway = await startGateway({
    upstream: [{ url: upstream.baseUrl, models: ['learning', 'untouched'] }],
    tokens: { tokenizer: 'none', calibrateEveryMs: 0 },
  })
})
afterAll(async () => {
  await gateway.stop()
  await upstream.stop()
})

const text = textOf('english')

async function count(model: string): Promise<number> {
  const messages = [{ role: 'user', content: text }]
  const httpResponse = await gateway.post('/compat/v1/messages/count_tokens', { model, messages })
  return JSON.parse(await httpResponse.text()).input_tokens
}

test('the usage that an upstream reports on one surface improves the counts of the other', async () => {
  const before = await count('learning')
  expect(before).toBeLessThan(reported * 0.9)
  await eventually('counts come near to what was reported', async () => {
    await gateway.post('/v1/responses', { model: 'learning', input: text, store: false })
    return Math.abs((await count('learning')) / reported - 1) < 0.02
  })
  expect(await count('untouched')).toBe(before)
})
