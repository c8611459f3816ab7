import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import {
  humanize,
  patchBetween,
  type SchemaFault,
  shapeOf,
  showValue,
  withoutNull,
} from '../../ui/schema/schema.ts'
import { SchemaField } from '../../ui/schema/schema-field.tsx'
import type { Setting } from './config.ts'

/** One setting: its control, where its value comes from, and how to undo or reset it. */
export function SettingRow({
  setting,
  names,
  draft,
  isChanged,
  faults,
  suggestions,
  onChange,
  onUndo,
}: {
  setting: Setting
  names: readonly [title: string, description: string] | undefined
  draft: unknown
  isChanged: boolean
  faults: readonly SchemaFault[]
  suggestions: Readonly<Record<string, readonly string[]>>
  /** Null: reset. */
  onChange: (value: unknown) => void
  onUndo: () => void
}) {
  const { key, schema, meta, value } = setting
  const { isNullable } = withoutNull(schema)
  const reset = isNullable ? null : meta.configured
  const shown = isChanged ? (draft === null ? reset : draft) : value
  const [title, description] = names ?? [
    schema.title ?? humanize(key.split('.').at(-1) ?? key),
    schema.description ?? '',
  ]
  const { kind } = shapeOf(withoutNull(schema).schema)
  const isWide = kind === 'object' || kind === 'map' || kind === 'list' || kind === 'json'
  const origin = meta.configured === meta.default ? 'default' : 'file'
  const resetLabel = isWide
    ? text('settings.reset')
    : text(`settings.reset_to.${origin}`, { value: showValue(reset, schema) })
  return (
    <div class={isChanged ? 'setting changed' : 'setting'} data-key={key}>
      <div class={isWide ? 'setting-control wide' : 'setting-control'}>
        <SchemaField
          schema={schema}
          label={title}
          hint={description}
          value={shown}
          path=""
          faults={faults}
          disabled={meta.locked_by !== null}
          suggestions={suggestions}
          onValue={(next) => onChange(next ?? null)}
        />
      </div>
      <div class="setting-facts">
        <span class="row">
          {isChanged ? (
            <span class="tag accent">{text('settings.unsaved_tag')}</span>
          ) : (
            <span class={meta.source === 'database' ? 'tag accent' : 'tag'}>
              {meta.locked_by === null
                ? text(`settings.source.${meta.source}`)
                : text('settings.locked', { variable: meta.locked_by })}
            </span>
          )}
          {meta.restart_required && <span class="tag">{text('settings.restart')}</span>}
        </span>
        <code class="small muted">{meta.config_key ?? key}</code>
        {isChanged && (
          <Button
            size="small"
            aria-label={text('settings.undo_name', { name: title })}
            onClick={onUndo}
          >
            {text('settings.undo')}
          </Button>
        )}
        {!isChanged &&
          meta.source === 'database' &&
          meta.locked_by === null &&
          patchBetween(value, reset) !== undefined && (
            <Button
              size="small"
              aria-label={`${resetLabel}: ${title}`}
              onClick={() => onChange(null)}
            >
              {resetLabel}
            </Button>
          )}
      </div>
    </div>
  )
}
