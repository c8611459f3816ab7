import type { ButtonHTMLAttributes, ComponentChildren } from 'preact'
import { Icon, type IconName } from './icon.tsx'

type ButtonProps = Omit<ButtonHTMLAttributes<HTMLButtonElement>, 'icon' | 'size'> & {
  kind?: 'plain' | 'primary' | 'quiet' | 'danger' | 'danger primary'
  size?: 'normal' | 'small'
  icon?: IconName
  children?: ComponentChildren
  /** For a button without text. */
  label?: string
}

export function Button({
  kind = 'plain',
  size = 'normal',
  icon,
  label,
  children,
  type = 'button',
  ...rest
}: ButtonProps) {
  const names = [
    'button',
    kind,
    size === 'small' ? 'small' : '',
    children === undefined ? 'icon' : '',
  ]
  return (
    <button
      {...rest}
      type={type}
      class={names.filter(Boolean).join(' ')}
      {...(label === undefined ? {} : { 'aria-label': label, title: label })}
    >
      {icon !== undefined && <Icon name={icon} size={16} />}
      {children}
    </button>
  )
}
