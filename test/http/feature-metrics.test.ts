import { afterEach, expect, test } from 'bun:test'
import { sql } from 'drizzle-orm'
import { tone } from '#test/support/engine-session.ts'
import { eventually } from '#test/support/eventually.ts'
import { type Gateway, type GatewayOptions, startGateway } from '#test/support/gateway.ts'
import { readMetrics } from '#test/support/metrics-text.ts'
import { openSpeech, pcmBytes } from '#test/support/speech-client.ts'
import { spokenFile } from '#test/support/spoken-files.ts'

/** Metrics of jobs, speech, the usage ledger and budgets. */

let gateway: Gateway | undefined
afterEach(async () => {
  await gateway?.stop()
})

async function start(options: GatewayOptions = {}): Promise<Gateway> {
  gateway = await startGateway(options)
  return gateway
}

async function scrape({ url }: Gateway) {
  return readMetrics(await (await fetch(`${url}/metrics`)).text())
}

test('attempts of jobs are counted by outcome, and the oldest due job has its age', async () => {
  const here = await start()
  const { jobs, database } = here.deps
  jobs.process('tried', {
    concurrencyMax: 1,
    attemptsMax: 2,
    async run({ attempt, payload }) {
      if (payload === 'fails' || attempt === 1) throw new Error('not yet')
    },
    async onFailed() {},
  })
  for (const payload of ['fails', 'succeeds']) {
    await database.drizzle.transaction((transaction) =>
      jobs.add(transaction, { queue: 'tried', key: null, payload }),
    )
  }
  await database.drizzle.execute(sql`
    insert into job (id, queue, payload, run_at, created_at) values
      (${crypto.randomUUID()}, 'nobody', '{}', now() - interval '1 hour', now()),
      (${crypto.randomUUID()}, 'later', '{}', now() + interval '1 hour', now())`)
  const attempts = (metrics: ReadonlyMap<string, number>, outcome: string) =>
    metrics.get(`sluice_job_duration_seconds_count{queue="tried",outcome="${outcome}"}`)
  await eventually('both have ended', async () => {
    const metrics = await scrape(here)
    return attempts(metrics, 'completed') === 1 && attempts(metrics, 'failed') === 1
  })
  const metrics = await scrape(here)
  expect(attempts(metrics, 'retried')).toBe(2)
  expect(metrics.get('sluice_jobs_oldest_due_seconds{queue="nobody"}')).toBeWithin(3_600, 3_700)
  expect(metrics.get('sluice_jobs_oldest_due_seconds{queue="later"}')).toBe(0)
})

test('speech is counted by engine with the seconds of its audio', async () => {
  const here = await start({ engine: [{ name: 'words', sessionsMax: 7 }] })
  const token = await here.token()
  const client = await openSpeech(here.port, { token })
  await client.start()
  const during = await scrape(here)
  expect(during.get('sluice_speech_sessions')).toBe(1)
  expect(during.get('sluice_speech_engine_sessions{engine="words"}')).toBe(1)
  expect(during.get('sluice_speech_engine_sessions_max{engine="words"}')).toBe(7)
  expect(during.get('sluice_speech_engine_up{engine="words"}')).toBe(1)
  client.sendAudio(pcmBytes(tone(2_000, 16_000)))
  await client.end()
  const form = new FormData()
  form.set('file', spokenFile([1]).file)
  form.set('model', 'stt')
  const transcribed = await here.request('/v1/audio/transcriptions', { method: 'POST', body: form })
  expect(transcribed.status).toBe(200)
  const metrics = await scrape(here)
  const ended = (kind: string) =>
    metrics.get(`sluice_speech_ended_total{kind="${kind}",engine="words",outcome="completed"}`)
  expect([ended('speech_session'), ended('transcription')]).toEqual([1, 1])
  const audio = 'sluice_speech_audio_seconds_total{kind="speech_session",engine="words"}'
  expect(metrics.get(audio)).toBe(2)
  expect(metrics.get('sluice_speech_engine_sessions{engine="words"}')).toBe(0)
})

test('records of the ledger are pending until they are written', async () => {
  const here = await start({ budgets: { default: { tokens_per_day: 1 } } })
  const ask = () => here.post('/v1/responses', { model: 'demo-fast', input: 'a', store: false })
  expect((await ask()).status).toBe(200)
  expect((await scrape(here)).get('sluice_usage_records_pending')).toBeLessThanOrEqual(1)
  await eventually('the record is written', async () => {
    const metrics = await scrape(here)
    const pending = metrics.get('sluice_usage_records_pending')
    return metrics.get('sluice_usage_records_written_total') === 1 && pending === 0
  })
  // A used-up budget refuses, which is counted.
  expect((await ask()).status).toBe(429)
  const refusals = 'sluice_budget_refusals_total{owner="user"}'
  expect((await scrape(here)).get(refusals)).toBe(1)
})
