import { call } from '../api/call.ts'
import { language, overrideTexts } from './texts.ts'

/** The namespace of the console's texts in `/v1/translations`. */
const namespace = 'console'

/** Language → namespace → key → text. */
type Overrides = Readonly<Record<string, Record<string, Record<string, string>>>>

export async function loadOverrides(): Promise<void> {
  const all = (await call('GET /v1/translations').catch(() => ({}))) as Overrides
  const changed = all[language.value]?.[namespace]
  if (changed !== undefined) overrideTexts(changed)
}
