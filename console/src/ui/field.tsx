import type { ComponentChildren } from 'preact'
import { useId } from 'preact/hooks'

type FieldProps = {
  label: string
  hint?: string | undefined
  /** Why the value is refused. */
  fault?: string | null | undefined
}

type Ids = { id: string; 'aria-describedby'?: string; 'aria-invalid'?: 'true' }

function Field({
  label,
  hint,
  fault,
  children,
}: FieldProps & { children: (ids: Ids) => ComponentChildren }) {
  const id = useId()
  const hasNote = Boolean(fault) || hint !== undefined
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({
        id,
        ...(hasNote ? { 'aria-describedby': `${id}-note` } : {}),
        ...(fault ? { 'aria-invalid': 'true' as const } : {}),
      })}
      {hasNote && (
        <span id={`${id}-note`} class={fault ? 'fault' : 'hint'}>
          {fault || hint}
        </span>
      )}
    </div>
  )
}

type InputHints = {
  type?: 'text' | 'password' | 'number' | 'search' | 'date' | 'datetime-local' | 'url'
  placeholder?: string
  autocomplete?: 'off' | 'on'
  spellcheck?: boolean
  disabled?: boolean
  inputMode?: 'decimal' | 'numeric'
  /** The id of a `datalist`. */
  list?: string
  required?: boolean
  min?: number | string
  max?: number | string
  step?: number | string
}

type Changes = { value: string; onValue: (value: string) => void }

export function TextField({
  label,
  hint,
  fault,
  value,
  onValue,
  ...rest
}: FieldProps & Changes & InputHints) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(ids) => (
        <input
          {...(rest as object)}
          {...ids}
          class="input"
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

export function AreaField({
  label,
  hint,
  fault,
  value,
  onValue,
  mono = false,
  ...rest
}: FieldProps &
  Changes & { mono?: boolean; rows?: number; placeholder?: string; disabled?: boolean }) {
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(ids) => (
        <textarea
          {...rest}
          {...ids}
          class={mono ? 'input mono' : 'input'}
          value={value}
          onInput={(event) => onValue(event.currentTarget.value)}
        />
      )}
    </Field>
  )
}

export type Option = { readonly value: string; readonly label: string; readonly group?: string }

export function SelectField({
  label,
  hint,
  fault,
  value,
  onValue,
  options,
  disabled = false,
}: FieldProps & Changes & { options: readonly Option[]; disabled?: boolean }) {
  const groups = [...new Set(options.map(({ group }) => group))]
  return (
    <Field label={label} hint={hint} fault={fault}>
      {(ids) => (
        <select
          {...ids}
          class="input"
          value={value}
          disabled={disabled}
          onChange={(event) => onValue(event.currentTarget.value)}
        >
          {groups.map((group) => {
            const items = options
              .filter((option) => option.group === group)
              .map((option) => (
                <option key={option.value} value={option.value}>
                  {option.label}
                </option>
              ))
            return group === undefined ? (
              items
            ) : (
              <optgroup key={group} label={group}>
                {items}
              </optgroup>
            )
          })}
        </select>
      )}
    </Field>
  )
}

export function Checkbox({
  label,
  hint,
  checked,
  onChecked,
  disabled = false,
}: {
  label: string
  hint?: string
  checked: boolean
  onChecked: (checked: boolean) => void
  disabled?: boolean
}) {
  const id = useId()
  return (
    <div class="choice">
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChecked(event.currentTarget.checked)}
      />
      <label for={id}>
        {label}
        {hint !== undefined && <div class="small muted">{hint}</div>}
      </label>
    </div>
  )
}
