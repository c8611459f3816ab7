import { call } from '../api/call.ts'
import { addedLanguages, language, nameOfLanguage, overrideTexts } from './texts.ts'

/** The namespace of the console's texts in `/v1/translations`. */
export const consoleNamespace = 'console'

/** Language → namespace → key → text. */
export type Overrides = Readonly<Record<string, Record<string, Record<string, string>>>>

export async function loadOverrides(): Promise<void> {
  const all = (await call('GET /v1/translations').catch(() => ({}))) as Overrides
  addedLanguages.value = Object.keys(all).filter(
    (tag) => all[tag]?.[consoleNamespace] !== undefined && nameOfLanguage(tag) !== null,
  )
  const changed = all[language.value]?.[consoleNamespace]
  if (changed !== undefined) overrideTexts(changed)
}
