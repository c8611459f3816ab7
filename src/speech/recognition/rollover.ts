import type { EngineEvent } from '#speech/engine.ts'
import type { RunFailure } from './engine-run.ts'

/** `limit`: the engine's own limit of a session was near, or it says so; nothing was wrong. */
export type RolloverReason = RunFailure | 'mute' | 'limit'

export type Rollover = {
  readonly reason: RolloverReason
  /** Names of engines. */
  readonly from: string
  readonly to: string
  /** The fresh engine takes audio from here on. */
  readonly atMs: number
  /** What it is given of audio that was here before. */
  readonly replayedMs: number
}

/** What a line of engines tells, and asks, whoever makes transcripts of it. */
export type EngineLineHooks = {
  /** Every event but endings and `finalized`, with the times of the session. */
  heard(event: EngineEvent): void
  /** An engine has given all its finals of what is before this time. */
  drained(untilMs: number): void
  finalized(requests: readonly { readonly id: string; readonly audioMs: number }[]): void
  room(): void
  rolledOver(rollover: Rollover): void
  /** No engine can be had, so far. */
  waiting(): void
  /** What no final covers before this time is no longer here to be transcribed. */
  lost(untilMs: number): void
  ended(): void
  failed(reason: RolloverReason): void
  /** Where the audio begins that no final covers. */
  uncoveredFromMs(): number
  /** Whether nobody spoke for a moment before this time. */
  isQuietAt(atMs: number): boolean
}
