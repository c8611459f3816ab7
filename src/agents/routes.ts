import { Elysia } from 'elysia'
import type { Auth } from '#auth/auth.ts'
import { guard } from '#auth/guard.ts'
import type { Permission } from '#auth/permissions.ts'
import type { Principal } from '#auth/principal.ts'
import { isUuid, parsePage } from '#auth/schema.ts'
import type { Config } from '#config/schema.ts'
import { readJsonBody } from '#http/body.ts'
import { AppError } from '#lib/errors.ts'
import type { Agent, Agents } from './agents.ts'
import { type KnownModel, readChangedAgent, readNewAgent } from './definition.ts'
import { agentOperations } from './operations.ts'
import { renderAgent } from './render.ts'

export type AgentRoutesDeps = {
  auth: Auth
  agents: Agents
  /** How an agent is named where it is called. */
  names: { ofAgent(id: string): string }
  /** The models that an agent can be made of. */
  knownModel: KnownModel
  config: Pick<Config, 'limits'>
}

const requires = 'can_access_api' satisfies Permission

/** With it one may change and delete what others have made, as far as one sees it. */
const editPermission = 'can_edit_config' satisfies Permission

/** Making, sharing and ending agents. One that the caller may not see is not found. */
export function agentRoutes(deps: AgentRoutesDeps) {
  const { auth, agents, knownModel, config } = deps
  const read = (request: Request) => readJsonBody(request, config.limits)
  const shownTo = (principal: Principal) => (agent: Agent) => show(agent, principal, deps)
  return new Elysia({ name: 'agents', prefix: '/v1/agents' })
    .use(guard(auth))
    .post(
      '/',
      async ({ principal, request }) => {
        const definition = readNewAgent(await read(request), knownModel)
        return shownTo(principal)(await agents.create(principal.userId, definition))
      },
      { requires, parse: 'none', detail: agentOperations.create },
    )
    .get(
      '/',
      async ({ principal, query }) => {
        const page = await agents.list(principal, parsePage(query))
        return {
          object: 'list',
          data: page.agents.map(shownTo(principal)),
          has_more: page.hasMore,
          first_id: page.agents[0]?.id ?? null,
          last_id: page.agents.at(-1)?.id ?? null,
        }
      },
      { requires, detail: agentOperations.list },
    )
    .get(
      '/:id',
      async ({ principal, params: { id } }) =>
        shownTo(principal)(orAbsent(await agents.find(principal, uuidOf(id)), id)),
      { requires, detail: agentOperations.show },
    )
    .patch(
      '/:id',
      async ({ principal, params: { id }, request }) => {
        const body = await read(request)
        const changed = await agents.update(principal, uuidOf(id), (agent) => {
          demandEditor(agent, principal)
          return readChangedAgent(agent, body, knownModel)
        })
        return shownTo(principal)(orAbsent(changed, id))
      },
      { requires, parse: 'none', detail: agentOperations.change },
    )
    .delete(
      '/:id',
      async ({ principal, params: { id } }) => {
        const check = (agent: Agent) => demandEditor(agent, principal)
        if (!(await agents.remove(principal, uuidOf(id), check))) throw absent(id)
        return { id, object: 'agent.deleted', deleted: true }
      },
      { requires, detail: agentOperations.remove },
    )
}

function show(agent: Agent, principal: Principal, deps: AgentRoutesDeps) {
  return renderAgent(agent, {
    modelId: deps.names.ofAgent(agent.id),
    isReady: deps.knownModel(agent.model) !== undefined,
    isOwner: agent.ownerId === principal.userId,
    isEditable: isEditor(agent, principal),
  })
}

function isEditor({ ownerId }: Agent, { userId, permissions }: Principal): boolean {
  return ownerId === userId || permissions.has(editPermission)
}

/** Only for what the caller sees: to anybody else it is not there. */
function demandEditor(agent: Agent, principal: Principal): void {
  if (isEditor(agent, principal)) return
  throw new AppError('permission_denied', 'Only its owner may change this agent.')
}

function uuidOf(id: string): string {
  if (isUuid(id)) return id
  throw absent(id)
}

function orAbsent(found: Agent | undefined, id: string): Agent {
  if (found === undefined) throw absent(id)
  return found
}

function absent(id: string): AppError {
  return new AppError('not_found', `There is no agent with the id "${id}".`, { param: 'id' })
}
