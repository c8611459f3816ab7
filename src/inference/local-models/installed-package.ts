import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { isRecord, parseJson } from '#lib/json.ts'

/** The version of a package that is installed in a folder of its own; null if none is. */
export function installedVersion(folder: string, name: string): string | null {
  try {
    const described = parseJson(
      readFileSync(join(packagePath(folder, name), 'package.json'), 'utf8'),
    )
    const version = isRecord(described) ? described['version'] : undefined
    return typeof version === 'string' ? version : null
  } catch {
    return null
  }
}

export function packagePath(folder: string, name: string): string {
  return join(folder, 'node_modules', name)
}
