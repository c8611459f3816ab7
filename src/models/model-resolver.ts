import type { Agent } from '#agents/agents.ts'
import type { CallableAgents, ListedAgent } from '#agents/callable-agents.ts'
import { AppError } from '#lib/errors.ts'
import { type RequestPrincipal, systemPrincipal, withoutKey } from '#lib/request-context.ts'
import { unixSeconds } from '#lib/unix-seconds.ts'
import type { Log } from '#telemetry/log.ts'
import { type Catalogue, type Model, modelNotFound, type ResolveOptions } from './catalogue.ts'
import type { ModelAccess } from './model-access.ts'
import type { ModelNames } from './names.ts'

export type ModelResolver = ReturnType<typeof createModelResolver>

export type AvailableModel = Omit<Model, 'aliases' | 'targets' | 'isRestricted'> & {
  /** The name with a prefix. For agents equal to `id`. */
  readonly prefixedId: string
  readonly displayName: string
  readonly description: string | null
  readonly isAgent: boolean
  /** The name of the model, if `id` is an alias of it. */
  readonly aliasOf: string | null
}

type ModelResolverDeps = {
  catalogue: Pick<Catalogue, 'list' | 'listAliases' | 'find' | 'has' | 'resolve'>
  access: Pick<ModelAccess, 'isListed'>
  agents: Pick<CallableAgents, 'find' | 'list'>
  names: ModelNames
  log: Pick<Log, 'warn'>
}

/**
 * Resolves the model names of requests: models of the catalogue that the principal may use, and agents
 * that it may call. Everything else does not exist for the principal, and no error tells the difference.
 */
export function createModelResolver(deps: ModelResolverDeps) {
  const { access, catalogue, agents, names } = deps
  /** With the name in the catalogue, which may be an alias. */
  const findModel = (principal: RequestPrincipal, name: string) => {
    for (const id of names.spellings(name)) {
      const model = catalogue.find(principal, id)
      if (model !== undefined) return { id, model }
    }
    return undefined
  }
  /** For the base model of an agent: a key that lists the agent may use its model through it. */
  const principalOf = (principal: RequestPrincipal, { id }: Pick<Agent, 'id'>) =>
    access.isListed(principal, [names.ofAgent(id)]) ? withoutKey(principal) : principal
  const findAgent = async (principal: RequestPrincipal, name: string) => {
    const id = names.agentIdIn(name)
    return id === undefined ? undefined : agents.find(principal, id)
  }
  const availableAgent = (principal: RequestPrincipal, agent: ListedAgent): AvailableModel[] => {
    const base = catalogue.find(principalOf(principal, agent), agent.model)
    return base === undefined ? [] : [fromAgent(agent, base, names)]
  }

  return {
    /** Models, then agents, newest first. Calls no upstream. */
    async list(principal: RequestPrincipal): Promise<readonly AvailableModel[]> {
      const models = catalogue.list(principal).map((model) => fromModel(model, names))
      const visible = await listAgents(deps, principal)
      return [...models, ...visible.flatMap((agent) => availableAgent(principal, agent))]
    },

    /** Other names of listed models. */
    listAliases: (principal: RequestPrincipal): readonly AvailableModel[] =>
      catalogue.listAliases(principal).map(({ alias, model }) => fromModel(model, names, alias)),

    /** An entry of one of these lists, by any of its names. */
    async find(principal: RequestPrincipal, name: string): Promise<AvailableModel | undefined> {
      const known = findModel(principal, name)
      if (known !== undefined) return fromModel(known.model, names, known.id)
      const agent = await findAgent(principal, name)
      return agent === undefined ? undefined : availableAgent(principal, agent)[0]
    },

    /** The model to run, without waiting: what most requests name. Null: `resolve` decides. */
    resolveKnown(principal: RequestPrincipal, name: string): { model: Model; agent: null } | null {
      const known = findModel(principal, name)
      return known === undefined ? null : { model: known.model, agent: null }
    },

    /**
     * The model to run, and the agent if the name is one. Model names need no database access.
     *
     * Throws `model_not_found`, without telling hidden, deleted and unknown names apart, or
     * `service_unavailable`.
     */
    async resolve(
      principal: RequestPrincipal,
      name: string,
    ): Promise<{ model: Model; agent: Agent | null }> {
      const spellings = names.spellings(name)
      if (names.agentIdIn(name) === undefined || spellings.some(catalogue.has)) {
        return { model: await catalogue.resolve(name, { principal, spellings }), agent: null }
      }
      const agent = await findAgent(principal, name)
      if (agent === undefined) throw modelNotFound(name)
      const options = { principal: principalOf(principal, agent) }
      return { model: await resolveBaseModel(catalogue, agent, { name, options }), agent }
    },

    /** A model of this mode; throws `model_mode_mismatch` for another one. */
    resolveMode: (principal: RequestPrincipal, name: string, mode: Model['mode']): Promise<Model> =>
      catalogue.resolve(name, { principal, mode }),

    /** Whether a principal may use a model outside the catalogue: a built-in one, a speech engine. */
    mayUseOther: (principal: RequestPrincipal, name: string): boolean =>
      catalogue.has(name)
        ? catalogue.find(principal, name) !== undefined
        : access.isListed(principal, [name]),

    /** Whether a model has this name or alias, also one that a principal may not use. */
    isKnown: catalogue.has,

    /** The first model that generates text and that everyone may use. */
    firstOpenModel: (): string | undefined =>
      catalogue
        .list(systemPrincipal)
        .find(({ mode, isRestricted }) => mode === 'generate' && !isRestricted)?.id,

    /** The catalogue name of a model that agents can be based on. */
    agentModelName: (name: string, principal: RequestPrincipal) =>
      names
        .spellings(name)
        .find((spelling) => catalogue.find(principal, spelling)?.mode === 'generate'),
  }
}

function fromModel(model: Model, names: ModelNames, id = model.id): AvailableModel {
  const { aliases: _, targets: __, isRestricted: ___, ...available } = model
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
  { name, options }: { name: string; options: ResolveOptions },
): Promise<Model> {
  try {
    return await catalogue.resolve(agent.model, options)
  } catch (error) {
    if (!(error instanceof AppError) || error.kind !== 'model_not_found') throw error
    if (catalogue.has(agent.model)) throw modelNotFound(name)
    throw new AppError(
      'model_not_found',
      `The model of the agent "${name}" does not exist any more.`,
      { param: 'model' },
    )
  }
}
