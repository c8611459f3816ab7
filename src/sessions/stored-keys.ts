import { chmod, mkdir, open, readFile, rename } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { isMissing } from '#lib/durable-files.ts'
import { asRecord, isRecord, parseJson } from '#lib/json.ts'

/** The key of this machine for a gateway. */
export type StoredKey = { readonly key: string; readonly keyId: string }

/** Keys by the origin of their gateway, in a file that only its owner can read. */
export function createStoredKeys(configFolder: string) {
  const path = join(configFolder, 'sluice', 'credentials.json')

  async function readAll(): Promise<Record<string, unknown>> {
    try {
      const content = parseJson(await readFile(path, 'utf8'))
      return isRecord(content) ? content : {}
    } catch (error) {
      if (isMissing(error) || error instanceof SyntaxError) return {}
      throw error
    }
  }

  async function writeAll(keys: Record<string, unknown>): Promise<void> {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    const draft = `${path}.${Bun.randomUUIDv7()}`
    // The mode of a new file; an existing one would keep its own.
    const file = await open(draft, 'wx', 0o600)
    try {
      await file.writeFile(`${JSON.stringify(keys, null, 2)}\n`)
      await file.sync()
    } finally {
      await file.close()
    }
    await chmod(draft, 0o600)
    await rename(draft, path)
  }

  return {
    path,
    async find(origin: string): Promise<StoredKey | null> {
      const { key, key_id: keyId } = asRecord((await readAll())[origin])
      return typeof key === 'string' && typeof keyId === 'string' ? { key, keyId } : null
    },
    async put(origin: string, { key, keyId }: StoredKey): Promise<void> {
      await writeAll({ ...(await readAll()), [origin]: { key, key_id: keyId } })
    },
    async remove(origin: string): Promise<void> {
      const { [origin]: _, ...others } = await readAll()
      await writeAll(others)
    },
  }
}
