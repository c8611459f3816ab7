import type { Auth } from '#auth/auth.ts'
import { programEnvironment } from '#config/load.ts'
import type { Config } from '#config/schema.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Limits } from '#limits/admission.ts'
import { type Foundation, module } from '#module.ts'
import type { Ledger } from '#usage/ledger.ts'
import { mpg123Folder, setMpg123Folder } from './decoders/mpg123-package.ts'
import { engines } from './doctor.ts'
import { speechEndpoints } from './endpoints.ts'
import { changedEngines, configuredEngines, createEnginePool } from './engines/pool.ts'
import { speechMetrics } from './metrics.ts'
import { addSpeechGauges, reportUse } from './metrics-report.ts'
import { openRecognition } from './recognition/open-recognition.ts'
import type { OpenRecognition } from './recognition/recognition.ts'
import { SpeechSessions } from './session/sessions.ts'
import { transcriptionEndpoints } from './transcriptions/endpoints.ts'
import { createTranscriptions, type Transcriptions } from './transcriptions/transcriptions.ts'

type Needs = {
  usageLedger: Ledger | null
  limits: Limits
  modelResolver: { mayUseOther(principal: RequestPrincipal, name: string): boolean }
}

/** Speech to text, over WebSockets and for files, on the same engines. */
export const speechModule = module({
  name: 'speech',
  tags: { Speech: 'Speech to text, live and from files.' },
  doctor: engines,
  metrics: [speechMetrics],
  async start({
    config,
    log,
    now,
    metrics,
    modelResolver,
    usageLedger,
    limits,
  }: Foundation & Needs) {
    setMpg123Folder(mpg123Folder(config.data))
    const onUsed = reportUse(metrics, usageLedger)
    const engineDeps = { log, environment: programEnvironment() }
    const pool = createEnginePool(config.engine, engineDeps)
    const namesOf = ({ speech: { models }, engine }: Config) => [
      ...new Set([...models, ...configuredEngines(engine).map(({ name }) => name)]),
    ]
    let speechModels = namesOf(config)
    const recognitionDeps = { pool, settings: config.speech, log }
    const open: OpenRecognition = (options) => openRecognition(recognitionDeps, options)
    const speech = new SpeechSessions({
      config,
      log,
      languages: () => pool.languages,
      openRecognition: open,
      admit: limits.admitSpeech,
      onUsed,
    })
    const transcriptions = await createTranscriptions({
      config,
      pool,
      log,
      now,
      openRecognition: open,
      admit: limits.admitSpeech,
      onUsed,
      mayUseModel: modelResolver.mayUseOther,
    })
    addSpeechGauges(metrics, { speech, transcriptions, pool })
    return {
      services: {
        speech,
        transcriptions,
        /** The values of `model` of transcriptions. */
        speechModels: () => speechModels,
      },
      reload(next, { engine: before }) {
        const engines = changedEngines(pool, { before, next: next.engine }, engineDeps)
        return () => {
          pool.replace(engines)
          speechModels = namesOf(next)
        }
      },
      async close() {
        speech.close()
        await pool.close()
      },
    }
  },
  endpoints: (
    services: Foundation & {
      auth: Auth
      sockets: OpenSockets
      speech: SpeechSessions
      transcriptions: Transcriptions
    },
  ) => [
    ...speechEndpoints({ ...services, sessions: services.speech }),
    ...transcriptionEndpoints(services),
  ],
})
