import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Writes a model into the folder of installed models, as the installer leaves it. */
export function writeInstalledModel(
  folder: string,
  name: string,
  contents: Readonly<Record<string, string | Uint8Array>>,
): void {
  const modelFolder = join(folder, encodeURIComponent(name))
  mkdirSync(join(modelFolder, 'v'), { recursive: true })
  const files = Object.entries(contents).map(([path, content]) => {
    writeFileSync(join(modelFolder, 'v', path), content)
    return { path: `v/${path}`, bytes: content.length, sha256: '0'.repeat(64) }
  })
  const about = { isVerified: true, installedAt: '2020-01-01T00:00:00.000Z' }
  const record = { name, source: 'test', revision: null, files, bytes: 1, ...about }
  writeFileSync(join(modelFolder, 'model.json'), JSON.stringify(record))
}
