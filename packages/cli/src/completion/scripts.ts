/**
 * A script for each shell. It calls `paybell complete -- <words>` and reads a line for each candidate: the value, a
 * tab, the description. No script evaluates a description or a word of the command line: both may hold backticks.
 */
export const scripts: Readonly<Record<"bash" | "zsh" | "fish", string>> = {
  // bash shows no descriptions, so it reads none. `compgen -W` is not used: it evaluates the words that it gets.
  bash: `# The completion of paybell in bash.
_paybell() {
  local value description
  COMPREPLY=()
  while IFS=$'\\t' read -r value description; do
    COMPREPLY+=("$value")
  done < <(paybell complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F _paybell paybell
`,
  zsh: `# The completion of paybell in zsh, after compinit.
_paybell() {
  local value description
  local -a candidates
  while IFS=$'\\t' read -r value description; do
    candidates+=("\${value//:/\\\\:}:$description")
  done < <(paybell complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#candidates} )); then
    _describe -t candidates paybell candidates
  else
    _files
  fi
}
compdef _paybell paybell
`,
  fish: `# The completion of paybell in fish.
function __paybell_candidates
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l candidates (paybell complete -- $words[2..-1] "$current" 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\\n' $candidates
    else
        __fish_complete_path "$current"
    end
end
complete -c paybell -e
complete -c paybell -f -a '(__paybell_candidates)'
`,
};
