import type { Agent, Agents } from '#agents/agents.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Log } from '#telemetry/log.ts'
import { type Catalogue, type Model, modelNotFound } from './catalogue.ts'
import type { ModelNames } from './names.ts'

/** What a caller may name as a model: the models of the catalogue, and the agents they may see. */
export type ModelResolver = {
  /** Models first, then agents, newest first. It waits for no upstream. */
  list(caller: RequestPrincipal): Promise<readonly AvailableModel[]>
  /** One entry of the list, by any of its names. */
  find(caller: RequestPrincipal, name: string): Promise<AvailableModel | undefined>
  /**
   * The model to run, and the agent in whose name. Requests of the same caller with the same
   * `sessionKey` go to the same upstream as long as it answers. A name of a model never touches the
   * database.
   *
   * Throws `model_not_found`, in the same words whether an agent is hidden, deleted or never was,
   * or `service_unavailable` where nobody can tell.
   */
  resolve(
    caller: RequestPrincipal,
    name: string,
    sessionKey?: string | null,
  ): Promise<{ model: Model; agent: Agent | null }>
  /** The name under which the catalogue has a model that an agent can be made of. */
  agentModelName(name: string): string | undefined
}

export type AvailableModel = Omit<Model, 'targets' | 'ordered'> & {
  /** Its name with the prefix; `id` is the one without, as far as there is one. */
  readonly prefixedId: string
  readonly displayName: string
  readonly description: string | null
  readonly isAgent: boolean
}

/** So many agents are listed among the models, the newest ones. */
const listedAgentsMax = 1_000

export type ModelResolverDeps = {
  catalogue: Pick<Catalogue, 'list' | 'find' | 'resolve'>
  agents: Pick<Agents, 'find' | 'list'>
  names: ModelNames
  log: Pick<Log, 'warn'>
}

export function createModelResolver({
  catalogue,
  agents,
  names,
  log,
}: ModelResolverDeps): ModelResolver {
  const modelNamed = (name: string) =>
    names
      .spellings(name)
      .map(catalogue.find)
      .find((model) => model !== undefined)
  const agentNamed = async (caller: RequestPrincipal, name: string) => {
    const id = names.agentIdIn(name)
    return id === undefined ? undefined : agents.find(caller, id)
  }
  const offerAgent = (agent: Agent): AvailableModel[] => {
    const base = catalogue.find(agent.model)
    return base === undefined ? [] : [offeredAgent(agent, base, names)]
  }

  return {
    async list(caller) {
      const models = catalogue.list().map((model) => offeredModel(model, names))
      const visible = await listAgents(agents, caller, log)
      return [...models, ...visible.flatMap(offerAgent)]
    },

    async find(caller, name) {
      const model = modelNamed(name)
      if (model !== undefined) return offeredModel(model, names)
      const agent = await agentNamed(caller, name)
      return agent === undefined ? undefined : offerAgent(agent)[0]
    },

    async resolve(caller, name, sessionKey = null) {
      const affinity = sessionKey === null ? null : `${caller.userId}\0${sessionKey}`
      const isAgent = names.agentIdIn(name) !== undefined && modelNamed(name) === undefined
      if (!isAgent) {
        const spellings = names.spellings(name)
        return { model: await catalogue.resolve(name, { spellings, affinity }), agent: null }
      }
      const agent = await agentNamed(caller, name)
      if (agent === undefined) throw modelNotFound(name)
      return { model: await modelOf(agent, { name, affinity, catalogue }), agent }
    },

    agentModelName: (name) =>
      names.spellings(name).find((spelling) => catalogue.find(spelling)?.mode === 'generate'),
  }
}

function offeredModel(model: Model, names: ModelNames): AvailableModel {
  const { targets: _, ordered: __, ...shown } = model
  return {
    ...shown,
    prefixedId: names.ofModel(model.id),
    displayName: model.id,
    description: null,
    isAgent: false,
  }
}

/** It can what its model can. */
function offeredAgent(agent: Agent, base: Model, names: ModelNames): AvailableModel {
  const id = names.ofAgent(agent.id)
  return {
    id,
    prefixedId: id,
    displayName: agent.name,
    description: agent.description,
    mode: base.mode,
    capabilities: base.capabilities,
    contextWindow: base.contextWindow,
    created: unixSeconds(agent.createdAt),
    isDated: true,
    ownedBy: 'agent',
    isAgent: true,
  }
}

/** A list without the agents is better than none while the database is away. */
async function listAgents(
  agents: ModelResolverDeps['agents'],
  caller: RequestPrincipal,
  log: ModelResolverDeps['log'],
): Promise<readonly Agent[]> {
  try {
    return (await agents.list(caller, { limit: listedAgentsMax, after: undefined })).agents
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'service_unavailable') throw error
    log.warn('the models are listed without the agents', { error })
    return []
  }
}

async function modelOf(
  agent: Agent,
  given: { name: string; affinity: string | null; catalogue: ModelResolverDeps['catalogue'] },
): Promise<Model> {
  try {
    return await given.catalogue.resolve(agent.model, { affinity: given.affinity })
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'model_not_found') throw error
    throw new AppError(
      'model_not_found',
      `The model of the agent "${given.name}" does not exist any more.`,
      { param: 'model' },
    )
  }
}
