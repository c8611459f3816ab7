import { useState } from 'preact/hooks'
import { call, type RequestOf } from '../../api/call.ts'
import { ApiError } from '../../api/errors.ts'
import type { Agent } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { AreaField, Checkbox, SelectField, TextField } from '../../ui/field.tsx'
import { FormDialog } from '../../ui/form-dialog.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useQuery } from '../../ui/query.ts'
import { announce } from '../../ui/toasts.tsx'
import { faultOf } from '../playground/settings.ts'
import { draftOf, type ToolFault, type ToolsDraft, toolFaultOf, toolsOf } from './tool-drafts.ts'
import { ToolsForm } from './tools-form.tsx'

type Body = RequestOf<'PATCH /v1/agents/{agent_id}'>['body']
type Kind = NonNullable<Agent['visibility']>['kind']

const kinds: readonly Kind[] = ['owner', 'everyone', 'groups', 'users']
const efforts = ['minimal', 'low', 'medium', 'high'] as const
const collectionsMax = 100

const listOf = (value: string) => value.split(/[,\n]+/).flatMap((one) => one.trim() || [])
const numberOf = (value: string) => (value.trim() === '' ? null : Number(value))

/** A model with instructions, tools and documents under a name of its own. */
export function AgentForm({
  agent,
  onSaved,
  onClose,
}: {
  /** Null: a new one. */
  agent: Agent | null
  onSaved: () => void
  onClose: () => void
}) {
  const [name, setName] = useState(agent?.name ?? '')
  const [description, setDescription] = useState(agent?.description ?? '')
  const [model, setModel] = useState(agent?.model ?? '')
  const [instructions, setInstructions] = useState(agent?.instructions ?? '')
  const [tools, setTools] = useState<ToolsDraft>(() => ({
    view: 'form',
    drafts: (agent?.tools ?? []).map(draftOf),
  }))
  const [toolFault, setToolFault] = useState<ToolFault | null>(null)
  const [collections, setCollections] = useState<readonly string[]>(
    agent?.collections?.map(({ id }) => id) ?? [],
  )
  const [temperature, setTemperature] = useState(String(agent?.sampling?.temperature ?? ''))
  const [maxTokens, setMaxTokens] = useState(String(agent?.sampling?.max_output_tokens ?? ''))
  const [effort, setEffort] = useState(agent?.sampling?.reasoning_effort ?? '')
  const [kind, setKind] = useState<Kind>(agent?.visibility?.kind ?? 'owner')
  const [sharedWith, setSharedWith] = useState(() => sharedText(agent))
  const models = useModels(model)
  const areToolsReadable = faultOf(() => toolsOf(tools), '') === null

  const submit = async () => {
    const body = {
      name: name.trim(),
      description: description.trim() === '' ? null : description.trim(),
      model,
      instructions: instructions.trim() === '' ? null : instructions,
      tools: toolsOf(tools),
      collections: [...collections],
      sampling: {
        ...agent?.sampling,
        temperature: numberOf(temperature),
        max_output_tokens: numberOf(maxTokens),
        reasoning_effort: effort === '' ? null : effort,
      },
      visibility: {
        kind,
        ...(kind === 'groups' ? { groups: listOf(sharedWith) } : {}),
        ...(kind === 'users' ? { users: listOf(sharedWith) } : {}),
      },
      // The tools are checked by the API.
    } as unknown as Body & RequestOf<'POST /v1/agents'>['body']
    if (agent === null) await call('POST /v1/agents', { body })
    else await call('PATCH /v1/agents/{agent_id}', { path: { agent_id: agent.id }, body })
    announce(text('agents.saved', { name: body.name }))
    onSaved()
  }
  return (
    <FormDialog
      wide
      title={agent === null ? text('agents.create') : text('agents.edit', { name: agent.name })}
      submit={text(agent === null ? 'action.create' : 'action.save')}
      canSubmit={name.trim() !== '' && model !== '' && areToolsReadable}
      onSubmit={submit}
      onRefused={(error) =>
        setToolFault(error instanceof ApiError ? toolFaultOf(error.param, error.message) : null)
      }
      onClose={onClose}
    >
      <div class="pair">
        <TextField label={text('agents.name')} value={name} onValue={setName} />
        <SelectField
          label={text('agents.model')}
          value={model}
          onValue={setModel}
          options={[{ value: '', label: text('agents.choose_model') }, ...models]}
        />
      </div>
      <TextField
        label={text('agents.description')}
        hint={text('agents.description_hint')}
        value={description}
        onValue={setDescription}
      />
      <AreaField
        label={text('agents.instructions')}
        hint={text('agents.instructions_hint')}
        rows={6}
        value={instructions}
        onValue={setInstructions}
      />
      <Documents chosen={collections} onChosen={setCollections} />
      <section class="stack tight" aria-label={text('agents.tools')}>
        <h3>{text('agents.tools')}</h3>
        <ToolsForm tools={tools} fault={toolFault} onTools={setTools} />
      </section>
      <details class="option" open={temperature !== '' || maxTokens !== '' || effort !== ''}>
        <summary>{text('agents.sampling')}</summary>
        <div class="trio">
          <TextField
            type="number"
            min={0}
            max={2}
            step={0.1}
            label={text('playground.temperature')}
            placeholder={text('playground.default')}
            value={temperature}
            onValue={setTemperature}
          />
          <TextField
            type="number"
            min={1}
            label={text('playground.max_tokens')}
            placeholder={text('playground.default')}
            value={maxTokens}
            onValue={setMaxTokens}
          />
          <SelectField
            label={text('playground.effort')}
            value={effort}
            onValue={setEffort}
            options={[
              { value: '', label: text('playground.effort.default') },
              ...efforts.map((value) => ({ value, label: text(`playground.effort.${value}`) })),
            ]}
          />
        </div>
      </details>
      <SelectField
        label={text('agents.visibility')}
        value={kind}
        onValue={(value) => setKind(value as Kind)}
        options={kinds.map((value) => ({ value, label: text(`agents.visibility.${value}`) }))}
      />
      {(kind === 'groups' || kind === 'users') && (
        <TextField
          label={text(`agents.shared_${kind}`)}
          hint={text(`agents.shared_${kind}_hint`)}
          value={sharedWith}
          onValue={setSharedWith}
        />
      )}
    </FormDialog>
  )
}

/** Collections that the agent searches. */
function Documents({
  chosen,
  onChosen,
}: {
  chosen: readonly string[]
  onChosen: (ids: readonly string[]) => void
}) {
  const query = useQuery(
    (signal) => call('GET /v1/collections', { query: { limit: collectionsMax }, signal }),
    'collections',
  )
  return (
    <fieldset class="group">
      <legend>{text('agents.documents')}</legend>
      <p class="small muted">{text('agents.documents_hint')}</p>
      {query.error !== undefined && <Fault error={query.error} onRetry={query.reload} />}
      {query.data?.data.length === 0 && <p class="muted">{text('agents.documents_none')}</p>}
      <div class="choices">
        {(query.data?.data ?? []).map(({ id, name, description }) => (
          <Checkbox
            key={id}
            label={name}
            {...(description === null ? {} : { hint: description })}
            checked={chosen.includes(id)}
            onChecked={(checked) =>
              onChosen(checked ? [...chosen, id] : chosen.filter((one) => one !== id))
            }
          />
        ))}
      </div>
    </fieldset>
  )
}

/** Models that generate text, and the present one even if it is not available. */
function useModels(present: string) {
  const query = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  const names = (query.data?.data ?? []).flatMap(({ id, mode, owned_by: owner }) =>
    mode === 'generate' && owner !== 'agent' ? [id] : [],
  )
  const all = present === '' || names.includes(present) ? names : [present, ...names]
  return all.map((id) => ({ value: id, label: id }))
}

function sharedText(agent: Agent | null): string {
  const { visibility } = agent ?? {}
  if (visibility === undefined) return ''
  if ('groups' in visibility) return visibility.groups.join(', ')
  return 'users' in visibility ? visibility.users.join(', ') : ''
}
