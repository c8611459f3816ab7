import type { RequestPrincipal } from '#lib/request-context.ts'
import type { AdmissionDeps } from './admission.ts'
import type { Plan } from './plans.ts'
import { addRateShortages, addSlotShortages, type Shortage } from './shortages.ts'

/** A live session or a file. Only sessions take a slot; the minutes of both count. */
export type SpeechKind = 'session' | 'file'

/** What a live session or a file holds of its limits. */
export type SpeechReservation = {
  /** Called once, with the audio that was received. */
  settle(audioMs: number): void
}

/** Applies limits to speech; null: none apply. Throws or rejects with an `AppError`. */
export type AdmitSpeech = (
  principal: RequestPrincipal,
  kind: SpeechKind,
) => SpeechReservation | null | Promise<SpeechReservation | null>

/** Reserved at the start; the length of speech is known at its end. */
const firstMinutes = 1
const minuteMs = 60_000

export function speechShortagesOf(
  { rates, slots }: Plan,
  kind: SpeechKind,
  nowMs: number,
): Shortage[] | null {
  const found = addRateShortages(null, rates.speech_minutes_per_hour, firstMinutes, nowMs)
  return kind === 'session' ? addSlotShortages(found, slots.speech_sessions, nowMs) : found
}

export function reserveSpeech(
  plan: Plan,
  kind: SpeechKind,
  nowMs: number,
  { leases, clockMs }: Pick<AdmissionDeps, 'leases' | 'clockMs'>,
): SpeechReservation {
  const { rates, slots } = plan.speech
  for (const meter of rates) meter.take(firstMinutes, nowMs)
  if (kind === 'session') for (const meter of slots) meter.take(nowMs)
  leases?.refill(plan.speech, nowMs)
  return {
    settle(audioMs) {
      const endedMs = clockMs()
      for (const meter of rates) meter.settle(audioMs / minuteMs - firstMinutes, endedMs)
      if (kind === 'session') for (const meter of slots) meter.release()
      leases?.settled(plan.speech)
    },
  }
}
