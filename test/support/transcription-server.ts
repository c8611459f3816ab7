import { mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import OpenAI from 'openai'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { Engine } from '#speech/engine.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { openRecognition } from '#speech/recognition/open-recognition.ts'
import { transcriptionEndpoints } from '#speech/transcriptions/endpoints.ts'
import { createTranscriptions, type Transcriptions } from '#speech/transcriptions/transcriptions.ts'
import { createLog } from '#telemetry/log.ts'
import { createTestApp } from './endpoints.ts'
import type { Gateway } from './gateway.ts'

/** Serves only `/v1/audio/transcriptions`, with test engines, on a free port. */
export type TranscriptionServer = {
  readonly port: number
  readonly url: string
  readonly pool: EnginePool
  readonly transcriptions: Transcriptions
  readonly logLines: readonly string[]
  /** Uploaded files that still have a name on disk. */
  filesLeft(): string[]
  openai(): Promise<OpenAI>
  /** Posts a form with these fields. */
  post(fields: Readonly<Record<string, string | File>>, init?: RequestInit): Promise<Response>
  stop(): Promise<void>
}

export type TranscriptionServerOptions = {
  readonly engines: readonly Engine[]
  readonly speech?: Partial<Config['speech']>
  readonly stream?: Partial<Config['stream']>
}

/** Uses the principals of `gateway`. */
export async function startTranscriptionServer(
  gateway: Gateway,
  options: TranscriptionServerOptions,
): Promise<TranscriptionServer> {
  const logLines: string[] = []
  const now = () => new Date()
  const write = (line: string) => logLines.push(line)
  const log = createLog({ level: 'debug', format: 'json', write, now })
  const data = mkdtempSync(join(tmpdir(), 'sluice-transcriptions-'))
  const base = loadConfig({ JWT_SECRET: 'a-secret-for-tests-of-at-least-32-characters' })
  const settings = { ...base.speech, ...options.speech }
  const config = { ...base, data, speech: settings, stream: { ...base.stream, ...options.stream } }
  const pool = new EnginePool(options.engines, log)
  const transcriptions = await createTranscriptions({
    mayUseModel: () => true,
    config,
    pool,
    log,
    now,
    openRecognition: (request) => openRecognition({ pool, settings, log }, request),
  })
  const { auth } = gateway.deps
  const app = createTestApp(transcriptionEndpoints({ transcriptions, config }), {
    auth,
    config,
    log,
  }).listen({ hostname: '127.0.0.1', port: 0, development: false })
  const port = app.server?.port ?? 0
  const url = `http://127.0.0.1:${port}`
  return {
    port,
    url,
    pool,
    transcriptions,
    logLines,
    filesLeft: () => readdirSync(join(data, 'speech')),
    openai: async () =>
      new OpenAI({ baseURL: `${url}/v1`, apiKey: await gateway.token(), maxRetries: 0 }),
    async post(fields, init = {}) {
      const form = new FormData()
      for (const [name, value] of Object.entries(fields)) form.append(name, value)
      const headers = { authorization: `Bearer ${await gateway.token()}` }
      const path = `${url}/v1/audio/transcriptions`
      return fetch(path, { method: 'POST', headers, body: form, ...init })
    },
    async stop() {
      await app.stop(true)
      await pool.close()
      rmSync(data, { recursive: true, force: true })
    },
  }
}
