import { resolve } from 'node:path'
import type { EncoderModel } from '#inference/upstreams/onnx/adapter.ts'
import type { InstalledModels } from '#installer/library.ts'
import { withoutVersion } from '#installer/names.ts'

/** The installed models with one ONNX file and a tokenizer. Most speech models have several. */
export async function onnxModels(installed: InstalledModels): Promise<readonly EncoderModel[]> {
  const models = await installed.list()
  return models.flatMap((model) => {
    const paths = model.files.map(
      (file) => [withoutVersion(file.path), resolve(installed.pathOf(model, file))] as const,
    )
    const files = new Map(paths)
    const weights = paths.filter(([path]) => path.endsWith('.onnx'))
    const [first] = weights
    if (first === undefined || weights.length > 1 || !files.has('tokenizer.json')) return []
    const { name, bytes, installedAt } = model
    return [{ name, installedAs: name, path: first[1], bytes, files, installedAt }]
  })
}
