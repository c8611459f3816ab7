import type { EngineConfig } from '#config/schema.ts'
import { type Engine, EngineError, languages } from '#speech/engine.ts'
import type { Log } from '#telemetry/log.ts'

/** What every adapter needs: the declaration of its kind, and small functions that adapters share. */

/** The part of the global `fetch` that is used here. */
export type EngineFetch = (url: string, init: RequestInit) => Promise<Response>

export type EngineDeps = {
  readonly log: Log
  /** The environment of programs. */
  readonly environment: Readonly<Record<string, string | undefined>>
  /** The environment of processes that run models; absent: the same. */
  readonly computeEnvironment?: Readonly<Record<string, string | undefined>>
  readonly fetch?: EngineFetch
  /** Absent: there are no local models. */
  readonly folders?: SpeechFolders
}

export type SpeechFolders = {
  /** Of installed models. */
  readonly models: string
  /** Where `speech install` puts the runtime of local models. */
  readonly runtime: string
}

/** An engine kind, as its adapter declares it. */
export type EngineKind = {
  /** What locates an engine of this kind: its `url`, its `command`, or neither. */
  readonly location: 'url' | 'command' | 'none'
  /** Values of `dialect`; absent: the key is ignored. */
  readonly dialects?: readonly string[]
  /** Whether the configuration may declare `features`. */
  readonly declaresFeatures?: true
  readonly create: (config: EngineConfig, deps: EngineDeps) => Engine
}

const defaultRateHz = 16_000

/** The part of an engine that follows from its configuration; no languages mean all of them. */
export function describeEngine(config: EngineConfig, kindRateHz = defaultRateHz) {
  const { name, languages: codes, sampleRateHz = kindRateHz, sessionsMax, sessionMsMax } = config
  return {
    name,
    sampleRateHz,
    languages:
      codes.length === 0 ? languages : languages.filter((language) => codes.includes(language)),
    limits: { sessionsMax, sessionMsMax },
  }
}

/** The error of an `open` whose signal aborted. */
export function openAborted(): EngineError {
  return new EngineError('unreachable', 'opening the session was cancelled')
}
