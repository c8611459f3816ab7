import { basename, resolve } from 'node:path'
import type { LocalModel } from '#inference/local-models/local-model.ts'
import type { InstalledFile, InstalledModel, InstalledModels } from '#installer/library.ts'

/**
 * The GGUF files of installed models. A model with a single file is named after the model; otherwise
 * each file is `org/name:file`.
 */
export async function ggufModels(installed: InstalledModels): Promise<readonly LocalModel[]> {
  const models = await installed.list()
  return models.flatMap((model) => {
    const files = filesOf(model)
    return files.map(({ first, bytes }) => ({
      name: files.length === 1 ? model.name : `${model.name}:${stemOf(first.path)}`,
      installedAs: model.name,
      path: resolve(installed.pathOf(model, first)),
      bytes,
    }))
  })
}

/** It answers on a laptop without a GPU, calls tools and knows many languages. */
export const defaultModel = { name: 'Qwen/Qwen3-0.6B-GGUF', bytes: 640_000_000 } as const

/** Quantisations, the best compromise of size and quality first. */
const preferred = [/q4_k_m/i, /q4_k/i, /q4/i, /q5/i, /q6/i, /q8/i]

/** One model of a repository, with all of its parts; it may hold the same in many quantisations. */
export function chooseGguf<F extends { readonly path: string }>(files: readonly F[]): readonly F[] {
  const weights = files.filter(
    ({ path }) => /\.gguf$/i.test(path) && !projector.test(basename(path)),
  )
  const names = [...new Set(weights.map(({ path }) => nameWithoutPart(path)))]
  const best = preferred.flatMap((pattern) => names.filter((name) => pattern.test(basename(name))))
  const [chosen] = [...best, ...names]
  return weights.filter(({ path }) => nameWithoutPart(path) === chosen)
}

/** A large model is split into parts, and loaded by the first: `…-00001-of-00003.gguf`. */
const part = /-(\d{5})-of-(\d{5})(?=\.gguf$)/i
/** A vision projector, not a model. */
const projector = /^mmproj/i

type GgufFile = { readonly first: InstalledFile; readonly bytes: number }

function filesOf(model: InstalledModel): readonly GgufFile[] {
  const files = model.files.filter(
    ({ path }) => /\.gguf$/i.test(path) && !projector.test(basename(path)),
  )
  const firsts = files.filter(({ path }) => Number(part.exec(path)?.[1] ?? 1) === 1)
  return firsts.map((first) => {
    const parts = files.filter(({ path }) => nameWithoutPart(path) === nameWithoutPart(first.path))
    return { first, bytes: parts.reduce((sum, { bytes }) => sum + bytes, 0) }
  })
}

/** The common name of the parts of a file. */
function nameWithoutPart(path: string): string {
  return path.replace(part, '-of-$2')
}

function stemOf(path: string): string {
  return basename(path)
    .replace(part, '')
    .replace(/\.gguf$/i, '')
}
