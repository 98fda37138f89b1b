package paybell

// SettlementEntry is one row of SettlementList.
type SettlementEntry struct {
	ReqID string `json:"reqId"`
	RefNo string `json:"refNo"`
}

// CardIPN is the IPN of a card command: section 2.2.
type CardIPN struct {
	AID             string `json:"aid"`
	Amount          string `json:"amount"`
	AppName         string `json:"appName"`
	ApproveCode     string `json:"approveCode"`
	BatchNo         string `json:"batchNo"`
	BillID          string `json:"billId"`
	CardHolder      string `json:"cardHolder"`
	CardNumber      string `json:"cardNumber"`
	CardScheme      string `json:"cardScheme"`
	Currency        string `json:"currency"`
	DeviceID        string `json:"deviceId"`
	ExpDate         string `json:"expDate"`
	ExtraData       string `json:"extraData"`
	ID              string `json:"id"`
	InvoiceNo       string `json:"invoiceNo"`
	IsoResponseCode string `json:"isoResponseCode"`
	MerchantAddress string `json:"merchantAddress"`
	MerchantID      string `json:"merchantId"`
	MerchantName    string `json:"merchantName"`
	MerchantTransID string `json:"merchantTransId"`
	MID             string `json:"mid"`
	PaymentType     string `json:"paymentType"`
	RefID           string `json:"refId"`
	ReqID           string `json:"reqId"`
	Status          string `json:"status"`
	SwipeType       string `json:"swipeType"`
	TC              string `json:"tc"`
	TID             string `json:"tid"`
	TraceNo         string `json:"traceNo"`
	TransDateTime   string `json:"transDateTime"`
	TransactionType string `json:"transaction_type"`
	Signature       string `json:"signature"`

	// Only with fields: "extended".
	Command       string `json:"command,omitempty"`
	OriginalID    string `json:"originalId,omitempty"`
	OriginalReqID string `json:"originalReqId,omitempty"`
}

// SettlementIPN is the IPN of a settlement: section 2.3.
type SettlementIPN struct {
	BatchNo         string            `json:"batchNo"`
	CallbackURL     string            `json:"callbackUrl"`
	DeviceID        string            `json:"deviceId"`
	ExtraData       string            `json:"extraData"`
	ID              string            `json:"id"`
	MerchantTransID string            `json:"merchantTransId"`
	MID             string            `json:"mid"`
	Quantity        string            `json:"quantity"`
	ReqID           string            `json:"reqId"`
	SaleQuantity    string            `json:"saleQuantity"`
	SaleTotalAmount string            `json:"saleTotalAmount"`
	Status          string            `json:"status"`
	TID             string            `json:"tid"`
	TotalAmount     string            `json:"totalAmount"`
	TransactionTime string            `json:"transaction_time"`
	TransactionType string            `json:"transaction_type"`
	VoidQuantity    string            `json:"voidQuantity"`
	VoidTotalAmount string            `json:"voidTotalAmount"`
	SettlementList  []SettlementEntry `json:"settlementList"`
	Signature       string            `json:"signature"`

	// Only with fields: "extended".
	Command  string `json:"command,omitempty"`
	Currency string `json:"currency,omitempty"`
}
