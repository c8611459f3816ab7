import { type CallerContext, type Endpoint, endpoint, json, jsonBody } from '#api/endpoint.ts'
import {
  deletedResponse,
  idExample,
  instantExample,
  listPage,
  pageQuery,
  pageResponse,
} from '#api/shapes.ts'
import type { Principal } from '#auth/principal.ts'
import { AppError } from '#lib/errors.ts'
import { actingPrincipal, type RequestPrincipal } from '#lib/request-context.ts'
import { refused } from '#lib/unprocessable.ts'
import { isUuid } from '#lib/uuid.ts'
import type { Collections } from '#retrieval/collections/create-collections.ts'
import { ambiguousName } from '#retrieval/collections/schema.ts'
import { type Agent, type AgentDefinition, builtInOwnerId } from './agents.ts'
import { parseAgentChange, parseNewAgent, referencesIn } from './definition.ts'
import { agentRecord, renderAgent } from './record.ts'
import { agentChange, newAgent } from './schema.ts'
import type { Agents } from './store.ts'

/** The catalogue's name of a model that generates text and that the principal may use. */
export type KnownModelOf = (name: string, principal: RequestPrincipal) => string | undefined

type AgentEndpointsDeps = {
  agents: Agents
  collections: Pick<Collections, 'resolve' | 'namesOf'>
  /** The model name by which an agent is called. */
  modelNames: { ofAgent(id: string): string }
  knownModel: KnownModelOf
}

/** Agents that a principal may not see do not exist for them. */
export function agentEndpoints(deps: AgentEndpointsDeps): Endpoint[] {
  const { agents, collections, modelNames, knownModel } = deps
  const renderAll = async ({ principal }: CallerContext, shown: readonly Agent[]) => {
    const editable = shown.filter((agent) => mayEdit(agent, principal))
    const ids = new Set(editable.flatMap((agent) => agent.collections))
    const collectionNames = await collections.namesOf(principal, [...ids])
    return shown.map((agent) =>
      renderAgent(agent, {
        modelId: modelNames.ofAgent(agent.id),
        isReady: knownModel(agent.model, principal) !== undefined,
        isOwner: agent.ownerId === principal.userId,
        isEditable: mayEdit(agent, principal),
        collectionNames,
      }),
    )
  }
  const render = async (context: CallerContext, agent: Agent) =>
    (await renderAll(context, [agent]))[0]
  const resolve = async ({ principal }: CallerContext, references: readonly string[]) => {
    const found = await collections.resolve(principal, references, collectionPath)
    return new Map(references.map((reference, index) => [reference, found[index]?.id]))
  }

  return [
    endpoint({
      method: 'POST',
      path: '/v1/agents',
      permission: 'can_access_api',
      tag: 'Agents',
      summary: 'Create an agent',
      description: `A stored configuration that is called like a model, by its \`model_id\`. Fields of a request take
precedence over those of the agent, except for the instructions: the agent's come first, the request's follow.
A field that is null counts as absent. All tools together may have 262,144 characters as JSON.`,
      body: jsonBody(newAgent, {
        example: newAgentExample,
        read: (body) => body,
      }),
      responses: { 200: agentResponse('The agent.') },
      errors: {
        unknown_field: unknownField,
        unprocessable: [
          ...invalidFields,
          {
            code: 'too_many_agents',
            message: 'You have 200 agents, which is the limit; delete one first.',
          },
        ],
      },
      async handle({ body, context }) {
        const { principal } = context
        const parsed = parseNewAgent(body, (name) => knownModel(name, principal))
        const ids = await resolve(context, parsed.collections)
        const definition = withCollectionIds(parsed, { ids, kept: [] })
        return render(context, await agents.create(actingPrincipal(context), definition))
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/agents',
      permission: 'can_access_api',
      tag: 'Agents',
      summary: 'List the agents that you may call',
      description: 'Your own and those shared with you, newest first.',
      query: pageQuery,
      responses: { 200: pageResponse('A page of agents.', agentRecord, agentExample) },
      errors: { unprocessable: '"limit" must be a whole number from 1 to 100.' },
      async handle({ query, context }) {
        const page = await agents.list(context.principal, query)
        return listPage(await renderAll(context, page.agents), page.hasMore)
      },
    }),

    endpoint({
      method: 'GET',
      path: '/v1/agents/:id',
      permission: 'can_access_api',
      tag: 'Agents',
      summary: 'Retrieve an agent',
      description: 'An agent that is not shared with you is not found.',
      params: idParam,
      responses: { 200: agentResponse('The agent.') },
      errors: { not_found: agentNotFound },
      async handle({ params: { id }, context }) {
        const agent = await agents.find(context.principal, requireUuid(id))
        return render(context, agent ?? notFound(id))
      },
    }),

    endpoint({
      method: 'PATCH',
      path: '/v1/agents/:id',
      permission: 'can_access_api',
      tag: 'Agents',
      summary: 'Update an agent',
      description: `Each field in the body replaces the whole field; null resets it to its default.
Callers with \`can_edit_config\` may also change agents that others share with them.`,
      params: idParam,
      body: jsonBody(agentChange, {
        example: { instructions: newAgentExample.instructions, description: null },
        read: (body) => body,
      }),
      responses: { 200: agentResponse('The updated agent.') },
      errors: {
        not_found: agentNotFound,
        permission_denied: notOwner,
        unknown_field: unknownField,
        unprocessable: invalidFields,
      },
      async handle({ params: { id }, body, context }) {
        const ids = await resolve(context, referencesIn(body))
        const { principal } = context
        const actor = actingPrincipal(context)
        const agent = await agents.update(actor, requireUuid(id), (current) => {
          requireEditor(current, principal)
          const changed = parseAgentChange(current, body, (name) => knownModel(name, principal))
          return withCollectionIds(changed, { ids, kept: current.collections })
        })
        return render(context, agent ?? notFound(id))
      },
    }),

    endpoint({
      method: 'DELETE',
      path: '/v1/agents/:id',
      permission: 'can_access_api',
      tag: 'Agents',
      summary: 'Delete an agent',
      description: 'New requests fail at once; responses in progress are completed.',
      params: idParam,
      responses: { 200: deletedResponse('The agent is deleted.', 'agent.deleted', idExample) },
      errors: { not_found: agentNotFound, permission_denied: notOwner },
      async handle({ params: { id }, context }) {
        const requireOwner = (agent: Agent) => requireEditor(agent, context.principal)
        const actor = actingPrincipal(context)
        const isRemoved = await agents.remove(actor, requireUuid(id), requireOwner)
        return isRemoved ? { id, object: 'agent.deleted', deleted: true } : notFound(id)
      },
    }),
  ]
}

/**
 * Replaces the references of collections by ids. Ids in `kept` stay, though the editor may not see them
 * or they were deleted since. Throws `unprocessable` of code `collection_not_found`.
 */
function withCollectionIds(
  definition: AgentDefinition,
  { ids, kept }: { ids: ReadonlyMap<string, string | undefined>; kept: readonly string[] },
): AgentDefinition {
  const collections = definition.collections.map((reference, index) => {
    const id = ids.get(reference) ?? kept.find((one) => one === reference.toLowerCase())
    if (id !== undefined) return id
    const message = `There is no collection "${reference}".`
    throw refused(collectionPath(index), message, 'collection_not_found')
  })
  return { ...definition, collections: [...new Set(collections)] }
}

const collectionPath = (index: number) => `collections[${index}]`

function mayEdit({ ownerId }: Agent, { userId, permissions }: Principal): boolean {
  return ownerId === userId || (permissions.has('can_edit_config') && ownerId !== builtInOwnerId)
}

function requireEditor(agent: Agent, principal: Principal): void {
  if (!mayEdit(agent, principal)) throw new AppError('permission_denied', notOwner)
}

function requireUuid(id: string): string {
  return isUuid(id) ? id : notFound(id)
}

function notFound(id: string): never {
  throw new AppError('not_found', `There is no agent with the id "${id}".`, { param: 'id' })
}

const idParam = { id: 'The id of the agent, without the prefix of `model_id`.' }
const notOwner = 'Only its owner may change this agent.'
const agentNotFound = `There is no agent with the id "${idExample}".`
const unknownField = '"tempreature" is not a known field.'
const invalidFields = [
  '"name" must not be empty.',
  { code: 'model_not_found', message: '"model" must name a model that generates text.' },
  { code: 'collection_not_found', message: 'There is no collection "contracts".' },
  ambiguousName,
  { code: 'principal_not_found', message: 'There is no group "legal".' },
] as const

const newAgentExample = {
  name: 'Contract reader',
  description: 'Answers questions about our contracts.',
  model: 'demo',
  instructions: 'Answer in the language of the question, and cite the clause.',
  collections: [],
  sampling: { temperature: 0.2 },
  speech: { model: 'kokoro', voice: 'af_heart' },
  visibility: { kind: 'everyone' },
}

const agentExample = {
  id: idExample,
  object: 'agent',
  model_id: `vendor-agent-${idExample}`,
  name: newAgentExample.name,
  description: newAgentExample.description,
  model: newAgentExample.model,
  status: 'ready',
  can_speak: true,
  is_owner: true,
  is_editable: true,
  created_at: instantExample,
  updated_at: instantExample,
  instructions: newAgentExample.instructions,
  tools: [],
  collections: [],
  sampling: {
    temperature: 0.2,
    top_p: null,
    top_k: null,
    presence_penalty: null,
    frequency_penalty: null,
    max_output_tokens: null,
    reasoning_effort: null,
  },
  speech: { ...newAgentExample.speech, speed: null, instructions: null },
  visibility: newAgentExample.visibility,
}

function agentResponse(description: string) {
  return { description, content: json(agentRecord, agentExample) }
}
