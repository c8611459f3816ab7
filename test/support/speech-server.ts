import { Elysia } from 'elysia'
import { mountEndpoints } from '#api/mount.ts'
import { loadConfig } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import { createOpenSockets } from '#http/open-sockets.ts'
import { requestLifecycle } from '#http/request-lifecycle.ts'
import { newId } from '#lib/id.ts'
import type { AdmitSpeech } from '#limits/speech.ts'
import { speechEndpoints } from '#speech/endpoints.ts'
import type { Engine } from '#speech/engine.ts'
import { EnginePool } from '#speech/engines/pool.ts'
import { openRecognition } from '#speech/recognition/open-recognition.ts'
import { SpeechSessions } from '#speech/session/sessions.ts'
import { socketSettings } from '#surfaces/responses/websocket.ts'
import { createAccessLog } from '#telemetry/access-log.ts'
import { createLog } from '#telemetry/log.ts'
import type { Gateway } from './gateway.ts'
import { createScriptedEngine } from './scripted-engine.ts'

/** Serves only `/v1/stt`, with test engines, on a free port. */
export type SpeechServer = {
  readonly port: number
  readonly sessions: SpeechSessions
  readonly logLines: readonly string[]
  readonly settings: Config['speech']
  openSockets(): number
  busySockets(): number
  /** Drains like a worker at shutdown. */
  drain(): void
  stop(): Promise<void>
}

export type SpeechServerOptions = {
  readonly engines?: readonly Engine[]
  readonly speech?: Partial<Config['speech']>
  readonly drain?: Partial<Config['drain']>
  readonly websocket?: Partial<Config['websocket']>
  readonly admit?: AdmitSpeech
}

/** Uses the principals of `gateway`. */
export function startSpeechServer(
  gateway: Gateway,
  options: SpeechServerOptions = {},
): SpeechServer {
  const logLines: string[] = []
  const log = createLog({
    level: 'debug',
    format: 'json',
    write: (line) => logLines.push(line),
    now: () => new Date(),
  })
  const base = loadConfig({ JWT_SECRET: 'a-secret-for-tests-of-at-least-32-characters' })
  const config = {
    ...base,
    speech: { ...base.speech, ...options.speech },
    drain: { ...base.drain, ...options.drain },
    websocket: { ...base.websocket, ...options.websocket },
  }
  const settings = config.speech
  const pool = new EnginePool(options.engines ?? [createScriptedEngine()], log)
  const sockets = createOpenSockets()
  const sessions = new SpeechSessions({
    config,
    log,
    languages: () => pool.languages,
    findEngine: (_, name) => pool.engines.find((engine) => engine.name === name),
    openRecognition: (request) => openRecognition({ pool, settings, log }, request),
    admit: options.admit,
  })
  const { auth } = gateway.deps
  const app = new Elysia({ websocket: socketSettings(config) })
    .use(
      requestLifecycle({
        observer: createAccessLog({ log, mode: () => 'all' }),
        newRequestId: () => newId('req_'),
        draining: () => false,
      }),
    )
    .use(
      mountEndpoints(speechEndpoints({ auth, sessions, sockets, config }), {
        auth,
        config,
      }),
    )
    .listen({ hostname: '127.0.0.1', port: 0, development: false })
  return {
    port: app.server?.port ?? 0,
    sessions,
    logLines,
    settings,
    openSockets: sockets.count,
    busySockets: sockets.busy,
    drain: sockets.drain,
    async stop() {
      sessions.close()
      await app.stop(true)
      await pool.close()
    },
  }
}
