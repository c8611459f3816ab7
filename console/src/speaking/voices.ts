import { computed, signal } from '@preact/signals'
import type { Model } from '../api/generated/types.ts'

export type Voice = { readonly model: string; readonly voice: string; readonly speed: number }

/** The models that speak, of those that the user may call. */
export const speakers = signal<readonly Model[]>([])

const storageKey = 'sluice.voice'
/** Of upstreams that do not tell their voices; the name that most of them know. */
const usualVoice = 'alloy'

const stored = signal<Partial<Voice>>(readStored())

/** What speaks, as chosen in this browser; null: nothing can speak. */
export const chosenVoice = computed<Voice | null>(() => {
  const model = speakers.value.find(({ id }) => id === stored.value.model) ?? speakers.value[0]
  if (model === undefined) return null
  const { voice = '', speed = 1 } = stored.value
  const isKnown = model.voices === undefined ? voice !== '' : model.voices.includes(voice)
  return { model: model.id, voice: isKnown ? voice : (model.voices?.[0] ?? usualVoice), speed }
})

export function chooseVoice(change: Partial<Voice>): void {
  stored.value = { ...stored.value, ...change }
  localStorage.setItem(storageKey, JSON.stringify(stored.value))
}

function readStored(): Partial<Voice> {
  try {
    return JSON.parse(localStorage.getItem(storageKey) ?? '{}')
  } catch {
    return {}
  }
}
