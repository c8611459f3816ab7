import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Type } from '@sinclair/typebox'
import { AppError } from '#lib/errors.ts'
import { parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import type { Log } from '#telemetry/log.ts'
import type { InstalledModel, InstalledModels } from './installed.ts'
import { diskBytes, isMissing, type Layout } from './layout.ts'
import { modelName } from './names.ts'

/** What lies in the installer's folder, as the disk says it at each call. */
export type Library = InstalledModels & {
  find(name: string): Promise<InstalledModel | undefined>
  usage(): Promise<{ used: number; partials: number }>
}

const checker = compileChecker(
  Type.Object({
    name: Type.String(),
    source: Type.String(),
    revision: Type.Union([Type.String(), Type.Null()]),
    files: Type.Array(
      Type.Object({ path: Type.String(), bytes: Type.Integer(), sha256: Type.String() }),
    ),
    bytes: Type.Integer(),
    isVerified: Type.Boolean(),
    installedAt: Type.String(),
  }),
)

export function createLibrary(layout: Layout, log: Pick<Log, 'warn'>): Library {
  async function find(name: string): Promise<InstalledModel | undefined> {
    if (!modelName.test(name)) return undefined
    const text = await readFile(layout.record(name), 'utf8').catch((error) => {
      if (isMissing(error)) return undefined
      throw error
    })
    if (text === undefined) return undefined
    const record = parseJson(text)
    if (checker.check(record) && record.name === name) return record
    log.warn('a model.json makes no sense, so its model is not there', { model: name })
    return undefined
  }

  return {
    find,
    async list() {
      const found = await Promise.all((await layout.models()).map(find))
      const models = found.filter((model) => model !== undefined)
      return models.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    },
    pathOf: ({ name }, { path }) => join(layout.model(name), path),
    async usage() {
      const partials = await diskBytes(layout.partials)
      return { used: (await diskBytes(layout.folder)) - partials, partials }
    },
  }
}

export function absentModel(name: string): AppError {
  return new AppError('not_found', `There is no installed model "${name}".`, { param: 'name' })
}
