{{- define "signalbox.name" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- else if contains $name .Release.Name -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 50 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "signalbox.selector" -}}
app.kubernetes.io/name: {{ default .root.Chart.Name .root.Values.nameOverride }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .name }}
{{- end -}}

{{- define "signalbox.labels" -}}
{{ include "signalbox.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version | replace "+" "_" }}
{{- end -}}

{{/* Ports of a function by name. */}}
{{- define "signalbox.ports" -}}
{{- $ports := dict
  "nrf" (dict "sbi" 8010 "admin" 9010)
  "scp" (dict "sbi" 8020 "admin" 9020)
  "bsf" (dict "sbi" 8030 "admin" 9030)
  "pcf" (dict "sbi" 8040 "diameter" 3840 "admin" 9040)
  "dsr" (dict "diameter" 3868 "admin" 9050) -}}
{{- get $ports . | toYaml -}}
{{- end -}}

{{/* Whether the state of a function is in files of its own. */}}
{{- define "signalbox.isEmbedded" -}}
{{- $store := default dict .config.store -}}
{{- if and (has .name (list "nrf" "bsf" "pcf")) (eq (default "embedded" $store.engine) "embedded") -}}yes{{- end -}}
{{- end -}}

{{- define "signalbox.host" -}}
{{ include "signalbox.name" .root }}-{{ .name }}.{{ .root.Release.Namespace }}.svc
{{- end -}}

{{- define "signalbox.apiRoot" -}}
{{- $ports := include "signalbox.ports" .name | fromYaml -}}
{{ ternary "https" "http" .root.Values.tls.enabled }}://{{ include "signalbox.host" . }}:{{ $ports.sbi }}
{{- end -}}

{{/* What the chart sets of a function; values of the user go over it. */}}
{{- define "signalbox.config" -}}
{{- $ports := include "signalbox.ports" .name | fromYaml -}}
{{- $config := dict "admin" (printf "${POD_IP}:%v" $ports.admin) -}}
{{- if $ports.sbi -}}
{{- $_ := set $config "listen" (list (printf "${POD_IP}:%v" $ports.sbi)) -}}
{{- $_ := set $config "apiRoot" (include "signalbox.apiRoot" .) -}}
{{- if .root.Values.tls.enabled -}}
{{- $folder := "/etc/signalbox/tls" -}}
{{- $files := dict "certificate" (printf "%s/tls.crt" $folder) "key" (printf "%s/tls.key" $folder) "authorities" (printf "%s/ca.crt" $folder) -}}
{{- $_ := set $config "tls" $files -}}
{{- $_ := set $config "clientTls" (deepCopy $files) -}}
{{- end -}}
{{- end -}}
{{- $hasNrf := .root.Values.functions.nrf.enabled -}}
{{- $nrf := list (include "signalbox.apiRoot" (dict "root" .root "name" "nrf")) -}}
{{- if and $hasNrf (has .name (list "bsf" "pcf")) -}}
{{- $_ := set $config "nrf" (dict "apiRoots" $nrf) -}}
{{- end -}}
{{- if eq .name "scp" -}}
{{- $host := include "signalbox.host" . -}}
{{- $short := printf "%s-scp" (include "signalbox.name" .root) -}}
{{- $_ := set $config "fqdn" $host -}}
{{- $_ := set $config "names" (list $short (printf "%s.%s" $short .root.Release.Namespace) (printf "%s.cluster.local" $host)) -}}
{{- if $hasNrf -}}{{- $_ := set $config "nrf" (dict "roots" $nrf) -}}{{- end -}}
{{- end -}}
{{- if eq .name "pcf" -}}
{{- $_ := set $config "diameter" (dict "enabled" false) -}}
{{- if $hasNrf -}}{{- $_ := set $config "bsf" (dict "discover" true) -}}{{- end -}}
{{- end -}}
{{- $own := mustMergeOverwrite $config (deepCopy .function.config) -}}
{{- dict "log" .root.Values.logs .name $own | toYaml -}}
{{- end -}}
