import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findModel } from '#speech/engines/local/model-files.ts'

const root = mkdtempSync(join(tmpdir(), 'sluice-speech-models-'))
afterAll(() => rmSync(root, { recursive: true }))

let installations = 0

/** As the installer does: the record is renamed into place after all files. */
function install(name: string, version: string, { english }: { english: boolean }): void {
  const folder = join(root, encodeURIComponent(name))
  mkdirSync(join(folder, version), { recursive: true })
  const files = ['encoder.onnx', 'decoder.onnx', 'tokens.txt'].map((file) => `${version}/${file}`)
  for (const file of files) writeFileSync(join(folder, file), '')
  const metadata = [...Buffer.from('is_multilingual'), 0x12, 1, english ? 0x30 : 0x31]
  writeFileSync(join(folder, `${version}/encoder.onnx`), Buffer.from(metadata))
  installations += 1
  const installedAt = new Date(installations * 1_000).toISOString()
  const record = { name, installedAt, files: files.map((path) => ({ path })) }
  writeFileSync(join(folder, 'model.json.new'), JSON.stringify(record))
  renameSync(join(folder, 'model.json.new'), join(folder, 'model.json'))
}

test('an installed model is read once, and again after an installation', () => {
  expect(findModel(root, undefined)).toBeNull()
  mkdirSync(join(root, 'org%2Fb'))
  expect(findModel(root, undefined)).toBeNull()
  install('org/b', '1', { english: true })
  const first = findModel(root, undefined)
  expect(first).toMatchObject({ name: 'org/b', languages: ['en'] })
  expect(findModel(root, undefined)).toBe(first)
  install('org/b', '2', { english: false })
  const second = findModel(root, undefined)
  expect(second?.languages.length).toBeGreaterThan(1)
  install('org/a', '1', { english: true })
  expect(findModel(root, undefined)?.name).toBe('org/a')
  expect(findModel(root, 'org/b')).toBe(second)
  rmSync(join(root, 'org%2Fa'), { recursive: true })
  expect(findModel(root, undefined)).toBe(second)
})

test('without a name the model is the one that was installed last', () => {
  install('org/c', '1', { english: true })
  install('org/d', '1', { english: true })
  install('csukuangfj/sherpa-onnx-whisper-base', '1', { english: false })
  install('org/c', '2', { english: true })
  expect(findModel(root, undefined)?.name).toBe('org/c')
  expect(findModel(root, 'org/d')?.name).toBe('org/d')
})
