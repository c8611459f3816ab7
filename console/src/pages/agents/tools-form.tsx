import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { AreaField, Checkbox, TextField } from '../../ui/field.tsx'
import { Tabs } from '../../ui/tabs.tsx'
import { faultOf, parseTools } from '../playground/settings.ts'
import {
  formOf,
  newDrafts,
  schemaFault,
  type ToolDraft,
  type ToolFault,
  type ToolsDraft,
  textOf,
} from './tool-drafts.ts'

/** The tools of an agent: a form for each, or all of them as JSON. */
export function ToolsForm({
  tools,
  fault,
  onTools,
}: {
  tools: ToolsDraft
  /** What the API refused. */
  fault: ToolFault | null
  onTools: (tools: ToolsDraft) => void
}) {
  const [switchFault, setSwitchFault] = useState<string | null>(null)
  const select = (view: ToolsDraft['view']) => {
    if (view === tools.view) return
    try {
      onTools(tools.view === 'json' ? formOf(tools.text) : { view: 'json', text: textOf(tools) })
      setSwitchFault(null)
    } catch (error) {
      setSwitchFault(text('agents.tools_no_form', { reason: (error as Error).message }))
    }
  }
  return (
    <Tabs
      label={text('agents.tools_view')}
      tabs={[
        { name: 'form', label: text('agents.tools_form') },
        { name: 'json', label: text('agents.tools_json') },
      ]}
      selected={tools.view}
      onSelect={select}
    >
      {switchFault !== null && (
        <p class="fault" role="alert">
          {switchFault}
        </p>
      )}
      {tools.view === 'json' ? (
        <AreaField
          mono
          rows={8}
          label={text('agents.tools_label')}
          hint={text('agents.tools_hint')}
          fault={faultOf(parseTools, tools.text) ?? fault?.message ?? null}
          value={tools.text}
          onValue={(value) => onTools({ view: 'json', text: value })}
        />
      ) : (
        <ToolRows
          drafts={tools.drafts}
          fault={fault}
          onDrafts={(drafts) => onTools({ view: 'form', drafts })}
        />
      )}
    </Tabs>
  )
}

function ToolRows({
  drafts,
  fault,
  onDrafts,
}: {
  drafts: readonly ToolDraft[]
  fault: ToolFault | null
  onDrafts: (drafts: readonly ToolDraft[]) => void
}) {
  const rows = useRef<HTMLDivElement>(null)
  const [added, setAdded] = useState(0)
  // The new row is what the user goes on with.
  useLayoutEffect(() => {
    if (added > 0) rows.current?.querySelector<HTMLElement>('fieldset:last-of-type input')?.focus()
  }, [added])
  const add = (type: ToolDraft['type']) => {
    onDrafts([...drafts, newDrafts[type]])
    setAdded((count) => count + 1)
  }
  const remove = (index: number) => {
    onDrafts(drafts.filter((_, at) => at !== index))
    rows.current?.querySelector<HTMLElement>('[data-tool-add]')?.focus()
  }
  return (
    <div class="stack" ref={rows}>
      <p class="small muted">{text('agents.tools_hint')}</p>
      {drafts.map((draft, index) => {
        const faultAt = (field: string) =>
          fault !== null && fault.index === index && fault.field === field ? fault.message : null
        const change = (next: ToolDraft) =>
          onDrafts(drafts.map((one, at) => (at === index ? next : one)))
        const number = index + 1
        return (
          <fieldset class="group card card-body" key={index}>
            <legend class="row">
              <span>{text(`agents.tool.${draft.type}`, { number })}</span>
              <Button
                size="small"
                kind="quiet"
                icon="trash"
                label={text('agents.tool_remove', { number })}
                onClick={() => remove(index)}
              />
            </legend>
            {faultAt('') !== null && <p class="fault">{faultAt('')}</p>}
            {draft.type === 'function' ? (
              <FunctionFields draft={draft} faultAt={faultAt} onDraft={change} />
            ) : (
              <ServerFields draft={draft} faultAt={faultAt} onDraft={change} />
            )}
          </fieldset>
        )
      })}
      <div class="row">
        <Button size="small" icon="plus" data-tool-add="" onClick={() => add('function')}>
          {text('agents.tool_add_function')}
        </Button>
        <Button size="small" icon="plus" onClick={() => add('mcp')}>
          {text('agents.tool_add_mcp')}
        </Button>
      </div>
    </div>
  )
}

type FieldsProps<Type extends ToolDraft['type']> = {
  draft: Extract<ToolDraft, { type: Type }>
  faultAt: (field: string) => string | null
  onDraft: (draft: ToolDraft) => void
}

function FunctionFields({ draft, faultAt, onDraft }: FieldsProps<'function'>) {
  return (
    <>
      <TextField
        label={text('agents.function_name')}
        hint={text('agents.function_name_hint')}
        fault={faultAt('name')}
        value={draft.name}
        onValue={(name) => onDraft({ ...draft, name })}
        spellcheck={false}
        autocomplete="off"
      />
      <TextField
        label={text('agents.function_description')}
        hint={text('agents.function_description_hint')}
        fault={faultAt('description')}
        value={draft.description}
        onValue={(description) => onDraft({ ...draft, description })}
      />
      <AreaField
        mono
        rows={6}
        label={text('agents.function_parameters')}
        hint={text('agents.function_parameters_hint')}
        fault={schemaFault(draft.parameters) ?? faultAt('parameters')}
        value={draft.parameters}
        onValue={(parameters) => onDraft({ ...draft, parameters })}
      />
      <Checkbox
        label={text('agents.function_strict')}
        checked={draft.isStrict}
        onChecked={(isStrict) => onDraft({ ...draft, isStrict })}
      />
    </>
  )
}

function ServerFields({ draft, faultAt, onDraft }: FieldsProps<'mcp'>) {
  return (
    <>
      <TextField
        label={text('agents.mcp_label')}
        hint={text('agents.mcp_label_hint')}
        fault={faultAt('server_label')}
        value={draft.label}
        onValue={(label) => onDraft({ ...draft, label })}
        spellcheck={false}
        autocomplete="off"
      />
      <TextField
        label={text('agents.mcp_allowed')}
        hint={text('agents.mcp_allowed_hint')}
        fault={faultAt('allowed_tools')}
        value={draft.allowed}
        onValue={(allowed) => onDraft({ ...draft, allowed })}
        spellcheck={false}
        autocomplete="off"
      />
      <Checkbox
        label={text('agents.mcp_approval')}
        checked={draft.needsApproval}
        onChecked={(needsApproval) => onDraft({ ...draft, needsApproval })}
      />
    </>
  )
}
