import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import { isMissing } from '#lib/durable-files.ts'
import { AppError } from '#lib/errors.ts'
import type { Frozen } from '#lib/frozen.ts'
import { parseJson } from '#lib/json.ts'
import { compileChecker } from '#lib/schema.ts'
import type { Log } from '#telemetry/log.ts'
import { diskBytes, type Layout } from './layout.ts'
import { modelName } from './names.ts'

const installedFile = Type.Object({
  /** Relative to the model's folder. */
  path: Type.String(),
  bytes: Type.Integer(),
  sha256: Type.String(),
})
const installedModel = Type.Object({
  /** `org/name` or `name`. */
  name: Type.String(),
  source: Type.String(),
  revision: Type.Union([Type.String(), Type.Null()]),
  files: Type.Array(installedFile),
  bytes: Type.Integer(),
  /** Whether every file has the hash that its source published. */
  isVerified: Type.Boolean(),
  installedAt: Type.String(),
})

/**
 * A model that is complete on this machine. The disk is the only record: `model.json`, which is
 * written last, holds this.
 */
export type InstalledModel = Frozen<Static<typeof installedModel>>
export type InstalledFile = Frozen<Static<typeof installedFile>>

export type InstalledModels = Pick<Library, 'list' | 'pathOf'>

/** Sentences that describe the current users of a model; a model without any can be deleted. */
export type ModelUses = (name: string) => Promise<readonly string[]>

export type Library = ReturnType<typeof createLibrary>

const checker = compileChecker(installedModel)

/** The installed models, read from the disk on each call. */
export function createLibrary(layout: Layout, log: Pick<Log, 'warn'>) {
  async function find(name: string): Promise<InstalledModel | undefined> {
    if (!modelName.test(name)) return undefined
    const text = await readFile(layout.record(name), 'utf8').catch((error) => {
      if (isMissing(error)) return undefined
      throw error
    })
    if (text === undefined) return undefined
    const record = parseJson(text)
    if (checker.check(record) && record.name === name) return record
    log.warn('invalid model.json, model ignored', { model: name })
    return undefined
  }

  return {
    find,
    async list(): Promise<readonly InstalledModel[]> {
      const found = await Promise.all((await layout.models()).map(find))
      const models = found.filter((model) => model !== undefined)
      return models.toSorted((a, b) => (a.name < b.name ? -1 : 1))
    },
    /** Absolute. */
    pathOf: ({ name }: InstalledModel, { path }: InstalledFile) => join(layout.model(name), path),
    /** The bytes of installed models, and of partially downloaded files. */
    async usage(): Promise<{ used: number; partials: number }> {
      const { folder, partials } = layout
      return { used: await diskBytes(folder, partials), partials: await diskBytes(partials) }
    },
  }
}

export function modelNotFound(name: string): AppError {
  return new AppError('not_found', `There is no installed model "${name}".`, { param: 'name' })
}
