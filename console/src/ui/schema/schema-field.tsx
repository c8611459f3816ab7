import { useState } from 'preact/hooks'
import { text } from '../../texts/texts.ts'
import { Button } from '../button.tsx'
import { Checkbox, SelectField, TextField } from '../field.tsx'
import { labelOf } from './labels.ts'
import {
  emptyValue,
  isRecord,
  type Schema,
  type SchemaFault,
  shapeOf,
  withoutNull,
} from './schema.ts'
import { JsonField, NumberField, SchemaText } from './schema-inputs.tsx'

export type SchemaFieldProps = {
  readonly schema: Schema
  readonly label: string
  readonly hint?: string | undefined
  readonly value: unknown
  /** Undefined: not set. */
  readonly onValue: (value: unknown) => void
  readonly path: string
  readonly faults: readonly SchemaFault[]
  /** Whether the value may be missing. */
  readonly isOptional?: boolean
  readonly disabled?: boolean
  /** Values to choose from, for texts that name something. */
  readonly suggestions?: Readonly<Record<string, readonly string[]>>
}

/** A control for any value that a JSON Schema describes. */
export function SchemaField(props: SchemaFieldProps) {
  const { label, hint, value, onValue, path, faults, disabled = false } = props
  const { schema, isNullable } = withoutNull(props.schema)
  const isOptional = props.isOptional === true || isNullable
  const fault = faults.find((one) => one.path === path)?.message
  const shape = shapeOf(schema)
  const common = { label, hint, fault, disabled }
  switch (shape.kind) {
    case 'boolean':
      return isOptional ? (
        <SelectField
          {...common}
          value={typeof value === 'boolean' ? String(value) : ''}
          onValue={(next) => onValue(next === '' ? undefined : next === 'true')}
          options={[
            { value: '', label: text('schema.not_set') },
            { value: 'true', label: text('schema.yes') },
            { value: 'false', label: text('schema.no') },
          ]}
        />
      ) : (
        <Checkbox
          label={label}
          {...(hint === undefined ? {} : { hint })}
          checked={value === true}
          disabled={disabled}
          onChecked={onValue}
        />
      )
    case 'choice':
      return (
        <SelectField
          {...common}
          value={value === undefined || value === null ? '' : JSON.stringify(value)}
          onValue={(next) => onValue(next === '' ? undefined : JSON.parse(next))}
          options={[
            ...(isOptional ? [{ value: '', label: text('schema.not_set') }] : []),
            ...shape.values.map((one) => ({ value: JSON.stringify(one), label: String(one) })),
          ]}
        />
      )
    case 'number':
      return <NumberField {...props} schema={schema} isOptional={isOptional} fault={fault} />
    case 'text':
    case 'secret':
      return <SchemaText {...props} schema={schema} isOptional={isOptional} fault={fault} />
    case 'list':
      return <SchemaList {...props} schema={schema} items={shape.items} fault={fault} />
    case 'map':
      return <SchemaMap {...props} schema={schema} entries={shape.entries} fault={fault} />
    case 'object':
      return (
        <fieldset class="group">
          <legend class={label === '' ? 'visually-hidden' : ''}>{label || path}</legend>
          {hint !== undefined && <p class="small muted">{hint}</p>}
          <SchemaFields {...props} schema={schema} />
        </fieldset>
      )
    case 'json':
      return <JsonField {...props} fault={fault} />
  }
}

/** The fields of an object; optional ones may stay empty. */
export function SchemaFields(
  props: Omit<SchemaFieldProps, 'label' | 'hint' | 'isOptional'> & { hints?: boolean },
) {
  const { schema, value, onValue, path, hints = true } = props
  const fields = isRecord(value) ? value : {}
  return (
    <div class="schema-fields">
      {Object.entries(schema.properties ?? {}).map(([name, field]) => (
        <SchemaField
          key={name}
          {...props}
          schema={field}
          label={labelOf(name, field)}
          hint={hints ? field.description : undefined}
          path={path === '' ? name : `${path}.${name}`}
          value={fields[name]}
          isOptional={schema.required?.includes(name) !== true}
          onValue={(next) => {
            const { [name]: _, ...others } = fields
            onValue(next === undefined ? others : { ...others, [name]: next })
          }}
        />
      ))}
    </div>
  )
}

type Inner = SchemaFieldProps & { fault: string | undefined }

/** The name of a list or map, its hint, and why it is refused. */
function Heading({ label, hint, fault }: Pick<Inner, 'label' | 'hint' | 'fault'>) {
  return (
    <>
      <legend>{label}</legend>
      {hint !== undefined && <p class="small muted">{hint}</p>}
      {fault !== undefined && (
        <p class="small bad-text" role="alert">
          {fault}
        </p>
      )}
    </>
  )
}

function SchemaList(props: Inner & { items: Schema }) {
  const { items, label, value, onValue, path, disabled = false } = props
  const list: readonly unknown[] = Array.isArray(value) ? value : []
  const isPlain = shapeOf(withoutNull(items).schema).kind === 'text'
  const replace = (at: number, next: unknown) =>
    onValue(list.map((one, index) => (index === at ? (next ?? emptyValue(items)) : one)))
  const remove = (at: number) => onValue(list.filter((_, index) => index !== at))
  return (
    <fieldset class="group">
      <Heading {...props} />
      {list.length === 0 && <p class="muted">{text('schema.list_empty')}</p>}
      <ul class="schema-list">
        {list.map((item, at) => (
          <li key={at} class={isPlain ? '' : 'schema-entry'}>
            <div class="grow">
              <SchemaField
                {...props}
                schema={items}
                label={isPlain ? `${label} ${at + 1}` : ''}
                hint={undefined}
                path={path === '' ? `${at}` : `${path}.${at}`}
                value={item}
                isOptional={false}
                onValue={(next) => replace(at, next)}
              />
            </div>
            {!disabled && (
              <Button
                kind="quiet"
                size="small"
                icon="trash"
                label={text('schema.remove', { name: `${label} ${at + 1}` })}
                onClick={() => remove(at)}
              />
            )}
          </li>
        ))}
      </ul>
      {!disabled && (
        <div>
          <Button size="small" icon="plus" onClick={() => onValue([...list, emptyValue(items)])}>
            {text('schema.add')}
          </Button>
        </div>
      )}
    </fieldset>
  )
}

function SchemaMap(props: Inner & { entries: Schema }) {
  const { entries, label, value, onValue, path, disabled = false } = props
  const [name, setName] = useState('')
  /** Open, to be filled in. */
  const [added, setAdded] = useState<string | null>(null)
  const map = isRecord(value) ? value : {}
  const isTaken = Object.hasOwn(map, name.trim())
  const add = () => {
    if (name.trim() === '' || isTaken) return
    onValue({ ...map, [name.trim()]: emptyValue(entries) })
    setAdded(name.trim())
    setName('')
  }
  return (
    <fieldset class="group">
      <Heading {...props} />
      {Object.keys(map).length === 0 && <p class="muted">{text('schema.map_empty')}</p>}
      {Object.entries(map).map(([key, item]) => (
        <details key={key} class="schema-entry option" open={key === added}>
          <summary>
            <code>{key}</code>
          </summary>
          <div class="stack">
            <SchemaField
              {...props}
              schema={entries}
              label=""
              hint={undefined}
              path={path === '' ? key : `${path}.${key}`}
              value={item}
              isOptional={false}
              onValue={(next) => onValue({ ...map, [key]: next ?? emptyValue(entries) })}
            />
            {!disabled && (
              <div>
                <Button
                  size="small"
                  icon="trash"
                  onClick={() => {
                    const { [key]: _, ...others } = map
                    onValue(others)
                  }}
                >
                  {text('schema.remove', { name: key })}
                </Button>
              </div>
            )}
          </div>
        </details>
      ))}
      {!disabled && (
        <div class="schema-add">
          <TextField
            label={text('schema.new_name', { name: label })}
            fault={isTaken ? text('schema.name_taken') : undefined}
            autocomplete="off"
            value={name}
            onValue={setName}
          />
          <Button icon="plus" disabled={name.trim() === '' || isTaken} onClick={add}>
            {text('schema.add')}
          </Button>
        </div>
      )}
    </fieldset>
  )
}
