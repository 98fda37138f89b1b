{{- define "paybell.selector" -}}
app.kubernetes.io/name: paybell
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "paybell.settings" -}}
PAYBELL_MASTER_KEY_FILE: /run/secrets/paybell/master.key
PAYBELL_OPERATOR_HOST: 0.0.0.0
PAYBELL_OPERATOR_ADDRESSES: {{ prepend .Values.operatorAddresses "127.0.0.0/8" | join "," }}
PAYBELL_TRUSTED_PROXIES: {{ join "," .Values.trustedProxies }}
{{- with .Values.intakeClaim }}
PAYBELL_INTAKE_FOLDER: /srv/paybell-intake
{{- end }}
{{- with .Values.settings }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "paybell.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ $.Chart.AppVersion }}{{ end }}
{{- end }}
{{- end }}

{{- define "paybell.secured" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "paybell.ready" -}}
exec:
  command:
    - node
    - -e
    - >-
      fetch("http://127.0.0.1:7421/readyz").then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))
timeoutSeconds: 5
{{- end }}
