import type { Actor } from '#audit/audit.ts'
import type { ConfigFile } from '#config/config-file.ts'
import type { KeyChange } from '#config/reload-plan.ts'

/** The file as all workers started with it, and as it was last accepted. */
export type ConfigFiles = { readonly started: ConfigFile; readonly accepted: ConfigFile }

/** Whose reload it is; null: a signal. */
export type Initiator = { readonly actor: Actor | null }

/** From the supervisor to a worker. The first message of all is `config`. */
export type SupervisorMessage =
  | { readonly type: 'config'; readonly files: ConfigFiles }
  | {
      readonly type: 'reload'
      readonly id: number
      readonly file: ConfigFile
      /** Set for the one worker that writes the audit entry. */
      readonly initiator: Initiator | null
    }
  | { readonly type: 'reload-report'; readonly id: number; readonly report: ReloadReport }

/** From a worker to the supervisor. */
export type ReloadMessage =
  | { readonly type: 'reload-request'; readonly id: number; readonly actor: Actor | null }
  | { readonly type: 'reloaded'; readonly id: number; readonly fault: string | null }

export const workerStates = ['reloaded', 'starting', 'failed', 'unresponsive', 'stopped'] as const

export type WorkerReport = {
  readonly pid: number
  readonly state: (typeof workerStates)[number]
  /** Why it failed. */
  readonly fault: string | null
}

export type ReloadReport =
  | {
      readonly outcome: 'reloaded'
      /** Null: there is no file. */
      readonly file: string | null
      readonly changed: readonly KeyChange[]
      readonly needsRestart: readonly string[]
      readonly workers: readonly WorkerReport[]
    }
  | { readonly outcome: 'invalid'; readonly faults: readonly string[] }
  | { readonly outcome: 'stopping' }
