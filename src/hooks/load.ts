import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Config } from '#config/schema.ts'
import type { GenerationJob } from '#inference/inference.ts'
import { messageOf } from '#lib/error-message.ts'
import { asRecord, isRecord } from '#lib/json.ts'
import { matchNames } from '#lib/name-patterns.ts'
import { StartError } from '#start-error.ts'
import type { LoadedHook } from './checks.ts'
import type { CreateHook, Hook, HookTools } from './hook.ts'
import { createModeration } from './moderation.ts'

type HookConfig = Config['hook'][number]

const builtIn: ReadonlyMap<string, CreateHook> = new Map([['moderation', createModeration]])

/** Creates the hooks of the configuration. Throws, naming the hook, for one that cannot be created. */
export async function loadHooks(
  config: Pick<Config, 'hook' | 'upstream'>,
  given: Pick<HookTools, 'fetch'>,
): Promise<LoadedHook[]> {
  const tools: HookTools = {
    ...given,
    upstream(name) {
      const found = config.upstream.find((one) => one.name === name)
      if (found === undefined) throw new Error(`there is no upstream "${name}"`)
      const { url = '', key, headers } = found
      return { baseUrl: url.replace(/\/+$/, ''), key, headers }
    },
  }
  const loaded: LoadedHook[] = []
  for (const entry of config.hook) {
    try {
      loaded.push(await load(entry, tools))
    } catch (cause) {
      const reason = messageOf(cause)
      throw new StartError(`The hook "${entry.name}" (${entry.module}) failed to load: ${reason}`, {
        cause,
      })
    }
  }
  return loaded
}

async function load(entry: HookConfig, tools: HookTools): Promise<LoadedHook> {
  const create = builtIn.get(entry.module) ?? (await importCreate(entry.module))
  const hook = await create(entry.options as Parameters<CreateHook>[0], tools)
  if (!isRecord(hook) || typeof hook['begin'] !== 'function') {
    throw new TypeError('createHook must return an object with the function begin')
  }
  const { name, deadlineMs, heldCharsMax } = entry
  const begin: Hook['begin'] = (call) => hook.begin(call)
  return { name, deadlineMs, heldCharsMax, begin, applies: appliesTo(entry) }
}

async function importCreate(path: string): Promise<CreateHook> {
  const exported: unknown = await import(pathToFileURL(resolve(path)).href)
  const create = asRecord(exported)['createHook']
  if (typeof create !== 'function') throw new TypeError('the module must export createHook')
  return create as CreateHook
}

function appliesTo({ models, groups }: HookConfig): (job: GenerationJob) => boolean {
  const isModel = models.length === 0 ? () => true : matchNames(models)
  const isGroup = new Set(groups)
  return ({ modelId, request, context }) =>
    isModel(modelId ?? request.model) &&
    (isGroup.size === 0 || context.principal.groups.some((group) => isGroup.has(group)))
}
