import type { EngineConfig } from '#config/schema.ts'
import { isUrl, webProtocols } from '#lib/url.ts'
import type { Engine } from '#speech/engine.ts'
import { deepgramKind } from './deepgram.ts'
import { demo } from './demo.ts'
import type { EngineDeps, EngineKind } from './engine-kind.ts'
import { exec } from './exec/engine.ts'
import { local } from './local/engine.ts'
import { openAiRealtime } from './openai-realtime/engine.ts'
import { openAiTranscriptions } from './openai-transcriptions.ts'
import { vosk } from './vosk.ts'

/**
 * The engine kinds, by the `kind` of an `[[engine]]`. Configuration checks and the doctor derive from
 * this list: a new kind is one file or folder here and one line below.
 */
export const engineKinds: Readonly<Record<string, EngineKind>> = {
  exec,
  vosk,
  'openai-realtime': openAiRealtime,
  'openai-transcriptions': openAiTranscriptions,
  deepgram: deepgramKind(),
  local,
  demo,
}

/** The kind of a configured engine, which was validated when the configuration was loaded. */
export function engineKind(kind: string): EngineKind {
  const known = engineKinds[kind]
  if (known === undefined) throw new Error(`no speech engine of kind "${kind}"`)
  return known
}

export function createEngine(config: EngineConfig, deps: EngineDeps): Engine {
  return engineKind(config.kind).create(config, deps)
}

const socketProtocols = [...webProtocols, 'ws:', 'wss:']

/** The errors in `kind`, `dialect`, `command`, `features` and `url` of the configured engines, one line each. */
export function* engineFaults(config: {
  readonly engine: readonly Pick<
    EngineConfig,
    'kind' | 'dialect' | 'command' | 'features' | 'url'
  >[]
}): Generator<string> {
  for (const [index, { kind, dialect, command, features, url }] of config.engine.entries()) {
    const known = engineKinds[kind]
    if (known === undefined) {
      const kinds = Object.keys(engineKinds).join(', ')
      yield `engine.${index}.kind (SLUICE_STT_ENGINE): expected one of ${kinds}.`
      continue
    }
    const { location, dialects = [dialect] } = known
    if (!dialects.includes(dialect)) {
      yield `engine.${index}.dialect: expected one of ${dialects.join(', ')}.`
    }
    if (location === 'command' && command.length === 0) {
      yield `engine.${index}.command: a program is needed.`
    }
    if (known.declaresFeatures !== true && features !== undefined) {
      yield `engine.${index}.features: only programs and plain transcription servers declare them; those of kind = "${kind}" are known.`
    }
    if (location === 'url' && !isUrl(url, socketProtocols)) {
      yield `engine.${index}.url (SLUICE_STT_URL): a ws, wss, http or https URL is needed.`
    }
  }
}
