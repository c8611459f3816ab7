import { type CatalogueTexts, readCatalogueFile } from '#config/portal.ts'

/** The texts that the portal has of its own. */
export type PortalTexts = {
  /**
   * The text that another one stands in place of: in its language, in one that it is a kind of, or
   * in any. Undefined where the portal has none of this name.
   */
  find(language: string, namespace: string, key: string): string | undefined
}

type Keys = ReadonlyMap<string, string>
type Namespaces = ReadonlyMap<string, Keys>

/** Maps, because a name such as `constructor` shall find nothing that was not written down. */
export function openCatalogue(path: string): PortalTexts {
  const texts = readCatalogueFile(path)
  const languages = new Map(
    Object.entries(texts).map(([language, namespaces]) => [language, toMaps(namespaces)]),
  )
  const anyLanguage = joined([...languages.values()])
  return {
    find(language, namespace, key) {
      for (const candidate of kindsOf(language)) {
        const text = languages.get(candidate)?.get(namespace)?.get(key)
        if (text !== undefined) return text
      }
      return anyLanguage.get(namespace)?.get(key)
    },
  }
}

function toMaps(namespaces: CatalogueTexts[string]): Namespaces {
  return new Map(
    Object.entries(namespaces).map(([namespace, keys]) => [
      namespace,
      new Map(Object.entries(keys)),
    ]),
  )
}

/** The first language that has a text gives it. */
function joined(languages: readonly Namespaces[]): Namespaces {
  const result = new Map<string, Map<string, string>>()
  for (const [namespace, keys] of languages.flatMap((namespaces) => [...namespaces])) {
    result.set(namespace, new Map([...keys, ...(result.get(namespace) ?? [])]))
  }
  return result
}

/** `zh-Hant-TW` → itself, `zh-Hant`, `zh`. */
function kindsOf(language: string): string[] {
  const subtags = language.split('-')
  return subtags.map((_, at) => subtags.slice(0, subtags.length - at).join('-'))
}
