import { expect, test } from 'bun:test'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '#config/load.ts'

/** The configuration of branding and translations. */

const folder = mkdtempSync(join(tmpdir(), 'sluice-config-'))

function write(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const load = (text: string) =>
  loadConfig({
    SLUICE_CONFIG: write('sluice.toml', text),
    JWT_SECRET: 'a-secret-of-at-least-32-characters-here',
  })

test('everything has a default', () => {
  const { branding, translations } = load('')
  expect([branding, translations]).toEqual([{ enforceContrast: false }, { languages: [] }])
})

test('languages, original texts and contrast checks can be configured', () => {
  const catalogue = write('catalogue.json', '{"en": {"common": {"save": "Save"}}}')
  const config = load(
    `[branding]\nenforce_contrast = true\n[translations]\nlanguages = ["de", "pt-br"]\ncatalogue = "${catalogue}"`,
  )
  expect(config.branding.enforceContrast).toBe(true)
  expect(config.translations).toEqual({ languages: ['de', 'pt-br'], catalogue })
})

test('an invalid language tag is refused at start', () => {
  expect(() => load('[translations]\nlanguages = ["de", "de_DE"]')).toThrow(
    'translations.languages.1: "de_DE" is not a language tag.',
  )
})

test('an unusable file of texts is refused at start', () => {
  const name = (path: string) => `[translations]\ncatalogue = "${path}"`
  expect(() => load(name('/nowhere/texts.json'))).toThrow('translations.catalogue: ')
  expect(() => load(name(write('broken.json', '{')))).toThrow('translations.catalogue: ')
  for (const text of ['[]', '{"en": {"a": "b"}}', '{"en": {"a": {"b": {"c": "d"}}}}']) {
    expect(() => load(name(write('wrong.json', text)))).toThrow(
      'must contain texts as language → namespace → key → text.',
    )
  }
})
