import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import type { ApiKey } from '../../api/generated/types.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { Fault } from '../../ui/notice.tsx'
import { useAction } from '../../ui/query.ts'
import { faultsOf, isRecord, patchBetween, type Schema } from '../../ui/schema/schema.ts'
import { SchemaFields } from '../../ui/schema/schema-field.tsx'
import { announce } from '../../ui/toasts.tsx'
import type { Configuration } from '../settings/config.ts'
import { type Entry, fieldsOf, type Scope } from './limit-entries.ts'
import { OwnerField } from './owner-field.tsx'

/** Models have no budgets, and only limits of calls. */
const hasBudgets = (scope: Scope) => scope !== 'model'
const ofCalls = /^(requests|input_tokens|output_tokens|concurrent)_/

function withoutSpeech(schema: Schema): Schema {
  const fields = Object.entries(schema.properties ?? {}).filter(([name]) => ofCalls.test(name))
  return { ...schema, properties: Object.fromEntries(fields) }
}

/** Changes the limits and budgets of one owner. */
export function EntryDialog({
  scope,
  config,
  entry,
  name,
  taken,
  keys,
  onSaved,
  onClose,
}: {
  scope: Scope
  config: Configuration
  /** Null: a new one. */
  entry: Entry | null
  name: string
  taken: readonly Entry[]
  keys: readonly ApiKey[]
  onSaved: () => void
  onClose: () => void
}) {
  const [owner, setOwner] = useState(entry?.id ?? '')
  const [limits, setLimits] = useState<unknown>(entry?.limits ?? {})
  const [budgets, setBudgets] = useState<unknown>(entry?.budgets ?? {})
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const allLimits = fieldsOf(config, 'limits')
  const limitFields = scope === 'model' ? withoutSpeech(allLimits) : allLimits
  const budgetFields = fieldsOf(config, 'budgets')
  const limitFaults = faultsOf(limitFields, limits)
  const budgetFaults = hasBudgets(scope) ? faultsOf(budgetFields, budgets) : []
  const known = entry ?? taken.find(({ id }) => id === owner) ?? null
  const patchOf = (before: unknown, after: unknown) => {
    const isEmpty = isRecord(after) && Object.keys(after).length === 0
    if (isEmpty && scope !== 'default') return before === null ? undefined : null
    return patchBetween(before ?? {}, after)
  }
  const save = () =>
    run(async () => {
      try {
        const nested = (patch: unknown) => (scope === 'default' ? patch : { [owner]: patch })
        const limitPatch = scope === 'key' ? undefined : patchOf(known?.limits ?? null, limits)
        const budgetPatch = hasBudgets(scope) ? patchOf(known?.budgets ?? null, budgets) : undefined
        const body = {
          ...(limitPatch === undefined ? {} : { limits: { [scope]: nested(limitPatch) } }),
          ...(budgetPatch === undefined ? {} : { budgets: { [scope]: nested(budgetPatch) } }),
        }
        if (scope === 'key') {
          const isEmpty = Object.keys(limits as object).length === 0
          await call('PATCH /v1/api-keys/{api_key_id}', {
            path: { api_key_id: owner },
            body: { limits: isEmpty ? null : (limits as Record<string, number>) },
          })
        }
        if (Object.keys(body).length > 0) await call('PATCH /v1/config', { body })
        announce(text('limits.saved'))
        onSaved()
      } catch (error) {
        setFault(error)
      }
    })
  const isComplete = scope === 'default' || owner.trim() !== ''
  const faultCount = limitFaults.length + budgetFaults.length
  return (
    <Dialog
      wide
      title={
        entry === null
          ? text(`limits.add.${scope as 'group'}`)
          : scope === 'default'
            ? text('limits.edit_everyone')
            : text('limits.edit', { name })
      }
      onClose={onClose}
      onSubmit={() => void save()}
      actions={
        <>
          <Button onClick={onClose}>{text('action.cancel')}</Button>
          <Button kind="primary" type="submit" disabled={isBusy || !isComplete || faultCount > 0}>
            {text('action.save')}
          </Button>
        </>
      }
    >
      {entry === null && <OwnerField scope={scope} keys={keys} value={owner} onValue={setOwner} />}
      <fieldset class="group">
        <legend>{text('settings.section.limits')}</legend>
        <p class="small muted">{text('limits.edit_hint')}</p>
        <SchemaFields
          schema={limitFields}
          value={limits}
          onValue={setLimits}
          path=""
          faults={limitFaults}
          hints={false}
        />
      </fieldset>
      {hasBudgets(scope) && (
        <fieldset class="group">
          <legend>{text('settings.section.budgets')}</legend>
          <p class="small muted">{text('limits.budget_hint')}</p>
          <SchemaFields
            schema={budgetFields}
            value={budgets}
            onValue={setBudgets}
            path=""
            faults={budgetFaults}
            hints={false}
          />
        </fieldset>
      )}
      {fault !== undefined && <Fault error={fault} />}
    </Dialog>
  )
}
