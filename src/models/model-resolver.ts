import type { Agent } from '#agents/agents.ts'
import type { CallableAgents, ListedAgent } from '#agents/callable-agents.ts'
import { AppError } from '#lib/errors.ts'
import type { RequestPrincipal } from '#lib/request-context.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Log } from '#telemetry/log.ts'
import { type Catalogue, type Model, modelNotFound } from './catalogue.ts'
import type { ModelNames } from './names.ts'

export type ModelResolver = ReturnType<typeof createModelResolver>

export type AvailableModel = Omit<Model, 'targets'> & {
  /** The name with a prefix. For agents equal to `id`. */
  readonly prefixedId: string
  readonly displayName: string
  readonly description: string | null
  readonly isAgent: boolean
  /** The name of the model, if `id` is an alias of it. */
  readonly aliasOf: string | null
}

type ModelResolverDeps = {
  catalogue: Pick<Catalogue, 'list' | 'listAliases' | 'find' | 'resolve'>
  agents: Pick<CallableAgents, 'find' | 'list'>
  names: ModelNames
  log: Pick<Log, 'warn'>
}

/** Resolves the model names of requests: models of the catalogue, and agents that the principal may call. */
export function createModelResolver(deps: ModelResolverDeps) {
  const { catalogue, agents, names } = deps
  /** With the name in the catalogue, which may be an alias. */
  const findModel = (name: string) =>
    names
      .spellings(name)
      .map((id) => ({ id, model: catalogue.find(id) }))
      .find(({ model }) => model !== undefined)
  const findAgent = async (principal: RequestPrincipal, name: string) => {
    const id = names.agentIdIn(name)
    return id === undefined ? undefined : agents.find(principal, id)
  }
  const availableAgent = (agent: ListedAgent): AvailableModel[] => {
    const base = catalogue.find(agent.model)
    return base === undefined ? [] : [fromAgent(agent, base, names)]
  }

  return {
    /** Models, then agents, newest first. Calls no upstream. */
    async list(principal: RequestPrincipal): Promise<readonly AvailableModel[]> {
      const models = catalogue.list().map((model) => fromModel(model, names))
      const visible = await listAgents(deps, principal)
      return [...models, ...visible.flatMap(availableAgent)]
    },

    /** Other names of listed models. */
    listAliases: (): readonly AvailableModel[] =>
      catalogue.listAliases().map(({ alias, model }) => fromModel(model, names, alias)),

    /** An entry of one of these lists, by any of its names. */
    async find(principal: RequestPrincipal, name: string): Promise<AvailableModel | undefined> {
      const { id, model } = findModel(name) ?? {}
      if (model !== undefined) return fromModel(model, names, id)
      const agent = await findAgent(principal, name)
      return agent === undefined ? undefined : availableAgent(agent)[0]
    },

    /**
     * The model to run, and the agent if the name is one. Model names need no database access.
     *
     * Throws `model_not_found`, without telling hidden, deleted and unknown agents apart, or
     * `service_unavailable`.
     */
    async resolve(
      principal: RequestPrincipal,
      name: string,
    ): Promise<{ model: Model; agent: Agent | null }> {
      const spellings = names.spellings(name)
      if (names.agentIdIn(name) === undefined || spellings.some((id) => catalogue.find(id))) {
        return { model: await catalogue.resolve(name, { spellings }), agent: null }
      }
      const agent = await findAgent(principal, name)
      if (agent === undefined) throw modelNotFound(name)
      return { model: await resolveBaseModel(catalogue, agent, name), agent }
    },

    /** The catalogue name of a model that agents can be based on. */
    agentModelName: (name: string) =>
      names.spellings(name).find((spelling) => catalogue.find(spelling)?.mode === 'generate'),
  }
}

function fromModel(model: Model, names: ModelNames, id = model.id): AvailableModel {
  const { targets: _, ...available } = model
  return {
    ...available,
    id,
    prefixedId: names.ofModel(model.id),
    displayName: model.id,
    description: null,
    isAgent: false,
    aliasOf: id === model.id ? null : model.id,
  }
}

/** An agent has the capabilities of its model. */
function fromAgent(agent: ListedAgent, base: Model, names: ModelNames): AvailableModel {
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
    ownedBy: 'agent',
    isAgent: true,
    aliasOf: null,
  }
}

/** While the database is unavailable, models are listed without agents. */
async function listAgents(
  { agents, log }: Pick<ModelResolverDeps, 'agents' | 'log'>,
  principal: RequestPrincipal,
): Promise<readonly ListedAgent[]> {
  try {
    return await agents.list(principal)
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'service_unavailable') throw error
    log.warn('agents unavailable, listing models without them', { error })
    return []
  }
}

async function resolveBaseModel(
  catalogue: ModelResolverDeps['catalogue'],
  agent: Agent,
  name: string,
): Promise<Model> {
  try {
    return await catalogue.resolve(agent.model)
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'model_not_found') throw error
    throw new AppError(
      'model_not_found',
      `The model of the agent "${name}" does not exist any more.`,
      { param: 'model' },
    )
  }
}
