import type { Auth } from '#auth/auth.ts'
import { computeEnvironment, programEnvironment } from '#config/load.ts'
import type { OpenSockets } from '#http/open-sockets.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import type { Limits } from '#limits/admission.ts'
import { type Foundation, module } from '#module.ts'
import type { Ledger } from '#usage/ledger.ts'
import { mpg123Folder, setMpg123Folder } from './decoders/mpg123-package.ts'
import type { SpeechChoices } from './dialects/choice.ts'
import { dialectEndpoints } from './dialects/endpoints.ts'
import { engines } from './doctor.ts'
import { speechEndpoints } from './endpoints.ts'
import { engineEndpoints } from './engine-endpoints.ts'
import { speechFolders } from './engines/local/package.ts'
import { changedEngines, createEnginePool, type EnginePool } from './engines/pool.ts'
import { speechMetrics } from './metrics.ts'
import { addSpeechGauges, reportUse } from './metrics-report.ts'
import { createSpeechModelNames } from './model-names.ts'
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
    fetch,
    metrics,
    modelResolver,
    usageLedger,
    limits,
  }: Foundation & Needs) {
    setMpg123Folder(mpg123Folder(config.data))
    const onUsed = reportUse(metrics, usageLedger)
    const engineDeps = {
      log,
      environment: programEnvironment(),
      computeEnvironment: computeEnvironment(config),
      fetch,
      folders: speechFolders(config),
    }
    const pool = createEnginePool(config.engine, engineDeps)
    const modelNames = createSpeechModelNames(pool, config)
    const recognitionDeps = { pool, settings: config.speech, log }
    const open: OpenRecognition = (options) => openRecognition(recognitionDeps, options)
    const speech = new SpeechSessions({
      config,
      log,
      languages: () => pool.languages,
      findEngine: (principal, name) =>
        modelResolver.mayUseOther(principal, name)
          ? pool.engines.find((engine) => engine.name === name)
          : undefined,
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
    const speechChoices: SpeechChoices = {
      languages: () => pool.languages,
      selectsByLanguage: modelNames.selectsByLanguage,
      hasEngine: (name) => pool.engines.some((engine) => engine.name === name),
      mayUseModel: modelResolver.mayUseOther,
    }
    addSpeechGauges(metrics, { speech, transcriptions, pool })
    return {
      services: {
        speech,
        transcriptions,
        speechEngines: pool,
        speechChoices,
        /** The values of `model` of transcriptions. */
        speechModels: modelNames.current,
      },
      reload(next, { engine: before }) {
        const engines = changedEngines(pool, { before, next: next.engine }, engineDeps)
        return () => {
          pool.replace(engines)
          modelNames.configure(next)
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
      speechChoices: SpeechChoices
      transcriptions: Transcriptions
      speechEngines: EnginePool
    },
  ) => [
    ...speechEndpoints({ ...services, sessions: services.speech }),
    ...transcriptionEndpoints(services),
    ...dialectEndpoints({
      ...services,
      sessions: services.speech,
      choices: services.speechChoices,
    }),
    ...engineEndpoints({ ...services, pool: services.speechEngines }),
  ],
})
