import type { RequestPrincipal } from '#lib/request-context.ts'
import { isLanguage, type Language } from '#speech/engine.ts'

/** What the clients of other protocols may name. */
export type SpeechChoices = {
  /** Languages that at least one engine serves. */
  readonly languages: () => readonly Language[]
  /** Whether the name selects an engine by language. */
  readonly selectsByLanguage: (model: string) => boolean
  /** Whether there is an engine of this name. */
  readonly hasEngine: (name: string) => boolean
  readonly mayUseModel: (principal: RequestPrincipal, name: string) => boolean
}

/** The engine of a model name, null for any; undefined: there is no such model for the principal. */
export function chooseEngineName(
  choices: SpeechChoices,
  principal: RequestPrincipal,
  model: string,
): string | null | undefined {
  if (!choices.mayUseModel(principal, model)) return undefined
  if (choices.selectsByLanguage(model)) return null
  return choices.hasEngine(model) ? model : undefined
}

/** The language of a tag such as `en-US`; null if no engine serves it. */
export function chooseLanguage({ languages }: SpeechChoices, tag: string): Language | null {
  const code = tag.split(/[-_]/, 1)[0]?.toLowerCase() ?? ''
  return isLanguage(code) && languages().includes(code) ? code : null
}

const vocabularyMax = 256
const phraseCharsMax = 128

/** Likely words and phrases, as many as sessions accept. */
export function chooseVocabulary(phrases: readonly string[]): readonly string[] {
  const usable = phrases
    .map((phrase) => phrase.trim())
    .filter(({ length }) => length > 0 && length <= phraseCharsMax)
  return [...new Set(usable)].slice(0, vocabularyMax)
}

export function wordsOf(text: string): readonly string[] {
  return text.match(/[\p{L}\p{N}][\p{L}\p{N}'’-]*/gu) ?? []
}
