import "../main";
