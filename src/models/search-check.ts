import type { ModelConfig } from '#config/schema.ts'
import type { CheckInputs } from '#doctor/check.ts'
import { type Finding, fail, ok, skip, warn } from '#doctor/finding.ts'
import { type Manifest, readManifest } from '#inference/upstreams/onnx/manifest.ts'
import { installCommand, packageFault } from '#inference/upstreams/onnx/package.ts'
import { createLayout, modelsFolder } from '#installer/layout.ts'
import { createLibrary } from '#installer/library.ts'
import { onnxFolder } from './onnx-config.ts'
import { onnxModels } from './onnx-models.ts'

type Task = Manifest['task']
/** Tasks of the installed embedding and rerank models, by name. */
type InstalledTasks = ReadonlyMap<string, Task>

/** What the doctor says of the models that search uses. */
export async function checkSearchModels(inputs: CheckInputs): Promise<readonly Finding[]> {
  const { model, retrieval } = inputs.config
  const installed = await installedTasks(inputs)
  const { embeddingModel, rerankerModel } = retrieval
  const rerank = { check: 'rerank model', name: rerankerModel ?? '', mode: 'rerank' } as const
  return [
    embeddingFinding(embeddingModel, model, installed),
    rerankerModel === undefined
      ? skip(rerank.check, 'none is configured')
      : modeFinding(rerank, model, installed),
  ]
}

/** Empty without the runtime, because no model runs then. */
async function installedTasks({ config, log }: CheckInputs): Promise<InstalledTasks> {
  const isOffered = config.onnx.enabled || config.upstream.some(({ api }) => api === 'onnx')
  if (!isOffered || packageFault(onnxFolder(config)) !== null) return new Map()
  const models = await onnxModels(createLibrary(createLayout(modelsFolder(config)), log))
  const described = models.map(async ({ name, files }): Promise<[string, Task][]> => {
    // A gateway ignores models with invalid files.
    const manifest = await readManifest(name, files).catch(() => null)
    return manifest === null ? [] : [[name, manifest.task]]
  })
  return new Map((await Promise.all(described)).flat())
}

function embeddingFinding(
  name: string,
  models: readonly ModelConfig[],
  installed: InstalledTasks,
): Finding {
  const check = 'embedding model'
  if (name === 'local' && [...installed.values()].includes('embed')) {
    return ok(check, 'the model installed last on this machine')
  }
  if (name !== 'local-hash' && name !== 'local') {
    return modeFinding({ check, name, mode: 'embed' }, models, installed)
  }
  return warn(
    check,
    'the built-in local-hash, which matches words and not meanings',
    `For semantic search, run "${installCommand}", or set retrieval.embedding_model (SLUICE_EMBEDDING_MODEL) to a [[model]] with mode = "embed".`,
  )
}

/** A model that is only listed by a remote upstream has the mode `generate`. */
function modeFinding(
  { check, name, mode }: { check: string; name: string; mode: Task },
  models: readonly ModelConfig[],
  installed: InstalledTasks,
): Finding {
  const found = models.find((model) => model.name === name || model.aliases.includes(name))?.mode
  if (found === mode) return ok(check, `"${name}"`)
  const task = found === undefined ? installed.get(name) : undefined
  if (task === mode) return ok(check, `"${name}", installed on this machine`)
  const wrong = found ?? task
  const detail =
    wrong === undefined ? `there is no [[model]] "${name}"` : `"${name}" has the mode ${wrong}`
  return fail(check, detail, `Add a [[model]] of this name with mode = "${mode}", or install one.`)
}
